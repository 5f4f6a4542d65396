"""The thread pool's native half, as LLVM text.

A call is a function over a range of tiles. The range is cut into tickets; each thread takes those
of its own share first and then steals. Nobody waits for a thread, only for work: a helper that is
preempted between tickets holds nobody up.

A call is published by a sequence lock: `generation` is odd while the fields of the call are
written, and its even value names the call in the upper half of each ticket counter. A thread that
comes late finds another name there and leaves.
"""

from __future__ import annotations

from rooftile.native.target import Target

MAX_THREADS = 64
LINE = 64
"""Bytes of a cache line: what different threads write lies in different lines."""

RUN = 0
"""Pointer to `pool_run`, so that code needs the pool's address alone."""
SPIN, HOT, COLD, GRAIN = 8, 16, 24, 32
"""u64 ticks that a thread spins before it sleeps; u64 nanoseconds: least work of a call that asks
helpers, least work ahead for which parked ones are woken, and work of one ticket."""
GENERATION, SLEEPERS, LOCK = 1 * LINE, 2 * LINE, 3 * LINE
"""u32 futex that counts calls twice; u32 parked helpers; u32 try-lock."""
FUNCTION, CONTEXT, TILES, COUNT, THREADS = (4 * LINE + 8 * place for place in range(5))
"""The present call: pointers to function and context; u64 tiles, u32 tickets, u32 threads."""
DONE, WAITERS = 5 * LINE, 5 * LINE + 4
"""u32 futex of tickets done; u32 whether the caller sleeps on it."""
CODE, STOP = 6 * LINE, 7 * LINE
"""u32 greatest code that a ticket returned; u32 flag that ends the helpers."""
TICKETS = 8 * LINE
"""For each thread a line: u64 ticket counter, call and index."""
POOL_BYTES = TICKETS + LINE * MAX_THREADS
MOST_TICKETS = 1 << 16


def supported(target: Target) -> bool:
    """Whether there is a pool for a target: it needs futexes and a counter that code may read."""
    return "linux" in target.triple and target.arch in ("x86_64", "aarch64")


def pool_text(target: Target) -> str:
    """Defines, for a pool of `POOL_BYTES` zero bytes with its first fields filled in:

    - `i32 pool_run(pool, function, context, i64 tiles, i64 cost, i64 ahead, i64 threads)`: calls
      `i32 function(context, i64 first, i64 last, i64 thread)` until all tiles are done, on up to
      `threads` threads, `thread` being below that. The result is the greatest code. `cost` and
      `ahead` are expected nanoseconds on one thread, of this call and of all up to the end of
      the program.
    - `pool_helper(pool, i64 thread)`: the life of a helper, until `pool_stop(pool)`.
    - `i64 pool_ticks()`: the counter that spinning is measured with.
    """
    if target.arch == "x86_64":
        relax, counter = "call void @llvm.x86.sse2.pause()", "call i64 @llvm.readcyclecounter()"
        declared = "declare void @llvm.x86.sse2.pause()\ndeclare i64 @llvm.readcyclecounter()"
    else:  # the cycle counter of Arm is not for programs, the one of its timer is
        relax = "call void @llvm.aarch64.hint(i32 1)"
        counter = "call i64 @llvm.read_volatile_register.i64(metadata !0)"
        declared = (
            "declare void @llvm.aarch64.hint(i32)\n"
            "declare i64 @llvm.read_volatile_register.i64(metadata)\n"
            '!0 = !{!"cntvct_el0"}'
        )
    names = {
        "relax": relax,
        "counter": counter,
        "declared": declared,
        "futex": 202 if target.arch == "x86_64" else 98,
        **{key: value for key, value in globals().items() if isinstance(value, int)},
    }
    return (_CALLS + _WORK + _HELPER + _RUN).format_map(names)


_CALLS = """
declare i64 @syscall(i64, ...)
{declared}

define i64 @pool_ticks() {{
  %now = {counter}
  ret i64 %now
}}

; Wait while the word at %at still holds %seen; wake all who wait on it. Private futexes.
define internal void @futex_wait(ptr %at, i32 %seen) {{
  call i64 (i64, ...) @syscall(i64 {futex}, ptr %at, i32 128, i32 %seen, ptr null, ptr null, i32 0)
  ret void
}}
define internal void @futex_wake(ptr %at) {{
  call i64 (i64, ...) @syscall(i64 {futex}, ptr %at, i32 129, i32 2147483647)
  ret void
}}

define void @pool_stop(ptr %pool) {{
  %stop_at = getelementptr i8, ptr %pool, i64 {STOP}
  %generation = getelementptr i8, ptr %pool, i64 {GENERATION}
  store atomic i32 1, ptr %stop_at seq_cst, align 4
  %old = atomicrmw add ptr %generation, i32 2 seq_cst
  call void @futex_wake(ptr %generation)
  ret void
}}

; The next index below %n of a counter of call %seq; -1 where none is left, -2 where that is over.
define internal i64 @claim(ptr %ticket, i32 %seq, i64 %n) {{
entry:
  %first = load atomic i64, ptr %ticket monotonic, align 8
  br label %try
try:
  %old = phi i64 [%first, %entry], [%now, %take]
  %high = lshr i64 %old, 32
  %name = trunc i64 %high to i32
  %same = icmp eq i32 %name, %seq
  br i1 %same, label %current, label %over
current:
  %index = and i64 %old, 4294967295
  %more = icmp ult i64 %index, %n
  br i1 %more, label %take, label %empty
take:
  %new = add i64 %old, 1
  %swap = cmpxchg ptr %ticket, i64 %old, i64 %new acq_rel monotonic
  %now = extractvalue {{i64, i1}} %swap, 0
  %won = extractvalue {{i64, i1}} %swap, 1
  br i1 %won, label %good, label %try
good:
  ret i64 %index
empty:
  ret i64 -1
over:
  ret i64 -2
}}
"""

_WORK = """
; What thread %me does of call %seq: the tickets of its own share, then those of the others.
define internal void @work(ptr %pool, ptr %fn, ptr %context, i64 %tiles, i64 %n, i64 %threads,
                           i32 %seq, i64 %me) {{
entry:
  %done = getelementptr i8, ptr %pool, i64 {DONE}
  %waiters = getelementptr i8, ptr %pool, i64 {WAITERS}
  %code_at = getelementptr i8, ptr %pool, i64 {CODE}
  %n32 = trunc i64 %n to i32
  br label %owner
owner:
  %v = phi i64 [0, %entry], [%v1, %next_owner]
  %more_owners = icmp ult i64 %v, %threads
  br i1 %more_owners, label %share, label %leave
share:
  %sum = add i64 %me, %v
  %o = urem i64 %sum, %threads
  %on = mul i64 %o, %n
  %low = udiv i64 %on, %threads
  %o1 = add i64 %o, 1
  %o1n = mul i64 %o1, %n
  %high = udiv i64 %o1n, %threads
  %size = sub i64 %high, %low
  %line = mul i64 %o, {LINE}
  %ticket_offset = add i64 %line, {TICKETS}
  %ticket = getelementptr i8, ptr %pool, i64 %ticket_offset
  br label %next
next:
  %q = call i64 @claim(ptr %ticket, i32 %seq, i64 %size)
  %gone = icmp eq i64 %q, -2
  br i1 %gone, label %leave, label %known
known:
  %none = icmp slt i64 %q, 0
  br i1 %none, label %next_owner, label %do
do:
  %index = add i64 %low, %q
  %index1 = add i64 %index, 1
  %scaled = mul i64 %index, %tiles
  %first = udiv i64 %scaled, %n
  %scaled1 = mul i64 %index1, %tiles
  %last = udiv i64 %scaled1, %n
  %code = call i32 %fn(ptr %context, i64 %first, i64 %last, i64 %me)
  %bad = icmp ne i32 %code, 0
  br i1 %bad, label %note, label %count
note:
  %c = atomicrmw umax ptr %code_at, i32 %code monotonic
  br label %count
count:
  %before = atomicrmw add ptr %done, i32 1 seq_cst
  %after = add i32 %before, 1
  %final = icmp eq i32 %after, %n32
  br i1 %final, label %tell, label %next
tell:
  %sleeping = load atomic i32, ptr %waiters seq_cst, align 4
  %someone = icmp ne i32 %sleeping, 0
  br i1 %someone, label %wake, label %next
wake:
  call void @futex_wake(ptr %done)
  br label %next
next_owner:
  %v1 = add i64 %v, 1
  br label %owner
leave:
  ret void
}}
"""

_HELPER = """
; Spin for a while after each call, then park until the next.
define void @pool_helper(ptr %pool, i64 %me) {{
entry:
  %generation = getelementptr i8, ptr %pool, i64 {GENERATION}
  %sleepers = getelementptr i8, ptr %pool, i64 {SLEEPERS}
  %stop_at = getelementptr i8, ptr %pool, i64 {STOP}
  %fn_at = getelementptr i8, ptr %pool, i64 {FUNCTION}
  %context_at = getelementptr i8, ptr %pool, i64 {CONTEXT}
  %tiles_at = getelementptr i8, ptr %pool, i64 {TILES}
  %count_at = getelementptr i8, ptr %pool, i64 {COUNT}
  %threads_at = getelementptr i8, ptr %pool, i64 {THREADS}
  %spin_at = getelementptr i8, ptr %pool, i64 {SPIN}
  %spin = load i64, ptr %spin_at
  br label %idle
idle:
  %last = phi i32 [0, %entry], [%last, %rested], [%g, %done]
  %start = {counter}
  br label %look
look:
  %g = load atomic i32, ptr %generation acquire, align 4
  %stop = load atomic i32, ptr %stop_at acquire, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %leave, label %fresh
fresh:
  %new = icmp ne i32 %g, %last
  %odd = and i32 %g, 1
  %even = icmp eq i32 %odd, 0
  %call = and i1 %new, %even
  br i1 %call, label %enter, label %spin_on
spin_on:
  {relax}
  %time = {counter}
  %spent = sub i64 %time, %start
  %long = icmp ugt i64 %spent, %spin
  br i1 %long, label %park, label %look
park:
  %s0 = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %halt = load atomic i32, ptr %stop_at seq_cst, align 4
  %halted = icmp ne i32 %halt, 0
  br i1 %halted, label %rested, label %sleep
sleep:
  call void @futex_wait(ptr %generation, i32 %g)
  br label %rested
rested:
  %s1 = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %idle
enter:
  %fn = load atomic ptr, ptr %fn_at monotonic, align 8
  %context = load atomic ptr, ptr %context_at monotonic, align 8
  %tiles = load atomic i64, ptr %tiles_at monotonic, align 8
  %n = load atomic i64, ptr %count_at monotonic, align 8
  %threads = load atomic i64, ptr %threads_at monotonic, align 8
  fence acquire
  %g2 = load atomic i32, ptr %generation monotonic, align 4
  %unchanged = icmp eq i32 %g, %g2
  %asked = icmp ult i64 %me, %threads
  %valid = and i1 %unchanged, %asked
  br i1 %valid, label %run, label %done
run:
  call void @work(ptr %pool, ptr %fn, ptr %context, i64 %tiles, i64 %n, i64 %threads, i32 %g,
                  i64 %me)
  br label %done
done:
  br label %idle
leave:
  ret void
}}
"""

_RUN = """
; Where the pool is busy with another caller, or the work is smaller than what asking the helpers
; costs, the caller does it alone: no result depends on who did what.
define i32 @pool_run(ptr %pool, ptr %fn, ptr %context, i64 %tiles, i64 %cost, i64 %ahead,
                     i64 %threads) {{
entry:
  %generation = getelementptr i8, ptr %pool, i64 {GENERATION}
  %sleepers = getelementptr i8, ptr %pool, i64 {SLEEPERS}
  %lock = getelementptr i8, ptr %pool, i64 {LOCK}
  %fn_at = getelementptr i8, ptr %pool, i64 {FUNCTION}
  %context_at = getelementptr i8, ptr %pool, i64 {CONTEXT}
  %tiles_at = getelementptr i8, ptr %pool, i64 {TILES}
  %count_at = getelementptr i8, ptr %pool, i64 {COUNT}
  %threads_at = getelementptr i8, ptr %pool, i64 {THREADS}
  %done = getelementptr i8, ptr %pool, i64 {DONE}
  %waiters = getelementptr i8, ptr %pool, i64 {WAITERS}
  %code_at = getelementptr i8, ptr %pool, i64 {CODE}
  %spin_at = getelementptr i8, ptr %pool, i64 {SPIN}
  %hot_at = getelementptr i8, ptr %pool, i64 {HOT}
  %cold_at = getelementptr i8, ptr %pool, i64 {COLD}
  %grain_at = getelementptr i8, ptr %pool, i64 {GRAIN}
  %hot = load i64, ptr %hot_at
  %small = icmp ult i64 %cost, %hot
  %few = icmp ult i64 %tiles, 2
  %serial = or i1 %small, %few
  br i1 %serial, label %alone, label %look
look:
  %parked = load atomic i32, ptr %sleepers monotonic, align 4
  %asleep = icmp ne i32 %parked, 0
  %cold = load i64, ptr %cold_at
  %little = icmp ult i64 %ahead, %cold
  %sleepy = and i1 %asleep, %little
  br i1 %sleepy, label %alone, label %try
try:
  %swap = cmpxchg ptr %lock, i32 0, i32 1 acquire monotonic
  %won = extractvalue {{i32, i1}} %swap, 1
  br i1 %won, label %publish, label %alone
alone:
  %only = call i32 %fn(ptr %context, i64 0, i64 %tiles, i64 0)
  ret i32 %only
publish:
  %grain = load i64, ptr %grain_at
  %parts = udiv i64 %cost, %grain
  %enough = icmp ugt i64 %parts, %threads
  %wish = select i1 %enough, i64 %parts, i64 %threads
  %much = icmp ugt i64 %wish, {MOST_TICKETS}
  %bounded = select i1 %much, i64 {MOST_TICKETS}, i64 %wish
  %fits = icmp ult i64 %bounded, %tiles
  %n = select i1 %fits, i64 %bounded, i64 %tiles
  %g0 = atomicrmw add ptr %generation, i32 1 seq_cst
  fence release
  %seq = add i32 %g0, 2
  store atomic ptr %fn, ptr %fn_at monotonic, align 8
  store atomic ptr %context, ptr %context_at monotonic, align 8
  store atomic i64 %tiles, ptr %tiles_at monotonic, align 8
  store atomic i64 %n, ptr %count_at monotonic, align 8
  store atomic i64 %threads, ptr %threads_at monotonic, align 8
  store atomic i32 0, ptr %done monotonic, align 4
  store atomic i32 0, ptr %code_at monotonic, align 4
  %seq64 = zext i32 %seq to i64
  %named = shl i64 %seq64, 32
  br label %ticket
ticket:
  %t = phi i64 [0, %publish], [%t1, %ticket]
  %line = mul i64 %t, {LINE}
  %offset = add i64 %line, {TICKETS}
  %ticket_at = getelementptr i8, ptr %pool, i64 %offset
  store atomic i64 %named, ptr %ticket_at monotonic, align 8
  %t1 = add i64 %t, 1
  %more = icmp ult i64 %t1, %threads
  br i1 %more, label %ticket, label %open
open:
  %g1 = atomicrmw add ptr %generation, i32 1 seq_cst
  %waiting = load atomic i32, ptr %sleepers seq_cst, align 4
  %someone = icmp ne i32 %waiting, 0
  br i1 %someone, label %wake, label %go
wake:
  call void @futex_wake(ptr %generation)
  br label %go
go:
  call void @work(ptr %pool, ptr %fn, ptr %context, i64 %tiles, i64 %n, i64 %threads, i32 %seq,
                  i64 0)
  %n32 = trunc i64 %n to i32
  %spin = load i64, ptr %spin_at
  %start = {counter}
  br label %wait
wait:
  %count = load atomic i32, ptr %done acquire, align 4
  %ready = icmp eq i32 %count, %n32
  br i1 %ready, label %over, label %spin_on
spin_on:
  {relax}
  %time = {counter}
  %spent = sub i64 %time, %start
  %long = icmp ugt i64 %spent, %spin
  br i1 %long, label %sleep, label %wait
sleep:
  store atomic i32 1, ptr %waiters seq_cst, align 4
  %again = load atomic i32, ptr %done seq_cst, align 4
  %ready2 = icmp eq i32 %again, %n32
  br i1 %ready2, label %awake, label %park
park:
  call void @futex_wait(ptr %done, i32 %again)
  br label %awake
awake:
  store atomic i32 0, ptr %waiters seq_cst, align 4
  br label %wait
over:
  %code = load atomic i32, ptr %code_at monotonic, align 4
  store atomic i32 0, ptr %lock release, align 4
  ret i32 %code
}}
"""
