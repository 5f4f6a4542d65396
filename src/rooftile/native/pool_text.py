"""The thread pool's native half, as LLVM text.

Nobody waits for a thread, only for work: the chunks of a phase are claimed by tickets, each thread
takes its own range first and then steals, and a phase is over when its chunks are done. A helper
that is preempted between chunks holds nobody up.

A job is a list of phases; `fn(context, phase, chunk, thread)` does one chunk. The caller takes part
as thread 0. Tickets carry the number of the call (`seq`) in their upper half: an older number means
nothing is claimed yet, a newer one that this thread is late and leaves.
"""

from __future__ import annotations

from rooftile.native.target import Target

LINE = 64
"""Bytes of a cache line: what different threads write lies in different lines."""

GENERATION, SLEEPERS, LOCK, JOB = 0 * LINE, 1 * LINE, 2 * LINE, 3 * LINE
"""u32 futex that counts calls; u32 parked helpers; u32 try-lock; pointer to the job; its seq."""
SEQUENCE = JOB + 8
THREADS, STOP, JOINED = 4 * LINE, 4 * LINE + 4, 4 * LINE + 8
"""u32 threads with the caller; u32 flag; u32 helpers that have begun."""
SPIN, LAST_END, HOT, COLD = 4 * LINE + 16, 4 * LINE + 24, 4 * LINE + 32, 4 * LINE + 40
"""u64 ticks: of spinning before a helper parks; when the last call ended; least work of a call for
which helpers are asked while they spin, and while they are parked."""
SLOTS = 5 * LINE
"""For each thread a line: u64 hazard (the job it is in), u32 thread id."""

JOB_FUNCTION, JOB_CONTEXT, JOB_PHASES, JOB_SEQUENCE, JOB_COST = 0, 8, 16, 20, 24
PHASES = LINE
PHASE_COUNT, PHASE_DONE, PHASE_WAITERS, PHASE_TICKETS = 0, LINE, LINE + 4, 2 * LINE


def phase_bytes(threads: int) -> int:
    """Bytes of one phase of a job."""
    return PHASE_TICKETS + LINE * threads


def pool_bytes(threads: int) -> int:
    """Bytes of the pool's own memory."""
    return SLOTS + LINE * threads


def pool_text(target: Target, threads: int) -> str:
    """Defines `pool_helper(pool, thread)`, `pool_run(pool, job)`, `pool_retire(pool, job)` and
    `pool_wake(pool)`.
    """
    x86 = target.arch == "x86_64"
    relax = "call void @llvm.x86.sse2.pause()" if x86 else "fence seq_cst"
    names = {
        "relax": relax,
        "pause": "declare void @llvm.x86.sse2.pause()" if x86 else "",
        "futex": {"x86_64": 202, "aarch64": 98}.get(target.arch, 202),
        "phase": phase_bytes(threads),
        **{key: value for key, value in globals().items() if isinstance(value, int)},
    }
    return _TEXT.format_map(names)


_TEXT = """
declare i64 @syscall(i64, ...)
declare i64 @llvm.readcyclecounter()
{pause}

; Wait while the word at %at still holds %seen; wake all who wait on it. Private futexes.
define internal void @futex_wait(ptr %at, i32 %seen) {{
  call i64 (i64, ...) @syscall(i64 {futex}, ptr %at, i32 128, i32 %seen, ptr null, ptr null, i32 0)
  ret void
}}
define internal void @futex_wake(ptr %at) {{
  call i64 (i64, ...) @syscall(i64 {futex}, ptr %at, i32 129, i32 2147483647)
  ret void
}}

; For the end of the pool: wake the helpers that are parked.
define void @pool_wake(ptr %pool) {{
  %generation = getelementptr i8, ptr %pool, i64 {GENERATION}
  call void @futex_wake(ptr %generation)
  ret void
}}

; The next index of a ticket that has %n; -1 where none is left, -2 where the call is over.
define internal i64 @claim(ptr %ticket, i32 %seq, i32 %n) {{
entry:
  %first = load atomic i64, ptr %ticket monotonic, align 8
  br label %try
try:
  %old = phi i64 [%first, %entry], [%now, %lost]
  %high = lshr i64 %old, 32
  %tag = trunc i64 %high to i32
  %age = sub i32 %tag, %seq
  %late = icmp sgt i32 %age, 0
  br i1 %late, label %over, label %current
current:
  %stale = icmp slt i32 %age, 0
  %low = trunc i64 %old to i32
  %index = select i1 %stale, i32 0, i32 %low
  %more = icmp ult i32 %index, %n
  br i1 %more, label %take, label %empty
take:
  %seq64 = zext i32 %seq to i64
  %upper = shl i64 %seq64, 32
  %next = add i32 %index, 1
  %next64 = zext i32 %next to i64
  %new = or i64 %upper, %next64
  %swap = cmpxchg ptr %ticket, i64 %old, i64 %new acq_rel monotonic
  %now = extractvalue {{i64, i1}} %swap, 0
  %won = extractvalue {{i64, i1}} %swap, 1
  br i1 %won, label %good, label %lost
lost:
  br label %try
good:
  %result = zext i32 %index to i64
  ret i64 %result
empty:
  ret i64 -1
over:
  ret i64 -2
}}

; Wait until %done has reached %wanted: spin, then sleep. 0 where the job has moved on meanwhile.
define internal i1 @wait_done(ptr %job, ptr %phase, i32 %seq, i32 %wanted, i64 %spin) {{
entry:
  %done = getelementptr i8, ptr %phase, i64 {PHASE_DONE}
  %waiters = getelementptr i8, ptr %phase, i64 {PHASE_WAITERS}
  %seq_at = getelementptr i8, ptr %job, i64 {JOB_SEQUENCE}
  %start = call i64 @llvm.readcyclecounter()
  br label %look
look:
  %count = load atomic i32, ptr %done acquire, align 4
  %left = sub i32 %count, %wanted
  %ready = icmp sge i32 %left, 0
  br i1 %ready, label %yes, label %check
check:
  %current = load atomic i32, ptr %seq_at monotonic, align 4
  %same = icmp eq i32 %current, %seq
  br i1 %same, label %spin_on, label %no
spin_on:
  {relax}
  %time = call i64 @llvm.readcyclecounter()
  %spent = sub i64 %time, %start
  %long = icmp ugt i64 %spent, %spin
  br i1 %long, label %sleep, label %look
sleep:
  %w0 = atomicrmw add ptr %waiters, i32 1 seq_cst
  %again = load atomic i32, ptr %done seq_cst, align 4
  %left2 = sub i32 %again, %wanted
  %ready2 = icmp sge i32 %left2, 0
  br i1 %ready2, label %awake, label %park
park:
  call void @futex_wait(ptr %done, i32 %again)
  br label %awake
awake:
  %w1 = atomicrmw sub ptr %waiters, i32 1 seq_cst
  br label %look
yes:
  ret i1 true
no:
  ret i1 false
}}

; All phases of call %seq of a job, as thread %me.
define internal void @work(ptr %pool, ptr %job, i32 %seq, i32 %me) {{
entry:
  %fn_at = getelementptr i8, ptr %job, i64 {JOB_FUNCTION}
  %fn = load ptr, ptr %fn_at
  %context_at = getelementptr i8, ptr %job, i64 {JOB_CONTEXT}
  %context = load ptr, ptr %context_at
  %phases_at = getelementptr i8, ptr %job, i64 {JOB_PHASES}
  %phases = load i32, ptr %phases_at
  %threads_at = getelementptr i8, ptr %pool, i64 {THREADS}
  %threads = load i32, ptr %threads_at
  %spin_at = getelementptr i8, ptr %pool, i64 {SPIN}
  %spin = load i64, ptr %spin_at
  br label %phase
phase:
  %k = phi i32 [0, %entry], [%k1, %finished]
  %any = icmp ult i32 %k, %phases
  br i1 %any, label %begin, label %leave
begin:
  %k64 = zext i32 %k to i64
  %skip = mul i64 %k64, {phase}
  %offset = add i64 %skip, {PHASES}
  %here = getelementptr i8, ptr %job, i64 %offset
  %n_at = getelementptr i8, ptr %here, i64 {PHASE_COUNT}
  %n = load i32, ptr %n_at
  %done = getelementptr i8, ptr %here, i64 {PHASE_DONE}
  %waiters = getelementptr i8, ptr %here, i64 {PHASE_WAITERS}
  %wanted = mul i32 %seq, %n
  br label %owner
owner:
  %v = phi i32 [0, %begin], [%v1, %next_owner]
  %more_owners = icmp ult i32 %v, %threads
  br i1 %more_owners, label %range, label %wait
range:
  %sum = add i32 %me, %v
  %o = urem i32 %sum, %threads
  %on = mul i32 %o, %n
  %low = udiv i32 %on, %threads
  %o1 = add i32 %o, 1
  %o1n = mul i32 %o1, %n
  %high = udiv i32 %o1n, %threads
  %size = sub i32 %high, %low
  %o64 = zext i32 %o to i64
  %line = mul i64 %o64, {LINE}
  %ticket_offset = add i64 %line, {PHASE_TICKETS}
  %ticket = getelementptr i8, ptr %here, i64 %ticket_offset
  br label %chunk
chunk:
  %q = call i64 @claim(ptr %ticket, i32 %seq, i32 %size)
  %gone = icmp eq i64 %q, -2
  br i1 %gone, label %leave, label %claimed
claimed:
  %none = icmp slt i64 %q, 0
  br i1 %none, label %next_owner, label %do
do:
  %low64 = zext i32 %low to i64
  %index = add i64 %low64, %q
  %me64 = zext i32 %me to i64
  call void %fn(ptr %context, i64 %k64, i64 %index, i64 %me64)
  %before = atomicrmw add ptr %done, i32 1 seq_cst
  %after = add i32 %before, 1
  %last = icmp eq i32 %after, %wanted
  br i1 %last, label %tell, label %chunk
tell:
  %sleeping = load atomic i32, ptr %waiters seq_cst, align 4
  %someone = icmp ne i32 %sleeping, 0
  br i1 %someone, label %wake, label %chunk
wake:
  call void @futex_wake(ptr %done)
  br label %chunk
next_owner:
  %v1 = add i32 %v, 1
  br label %owner
wait:
  %ok = call i1 @wait_done(ptr %job, ptr %here, i32 %seq, i32 %wanted, i64 %spin)
  br i1 %ok, label %finished, label %leave
finished:
  %k1 = add i32 %k, 1
  br label %phase
leave:
  ret void
}}

; A helper's life: spin for a while after each call, then park until the next.
define void @pool_helper(ptr %pool, i32 %me) {{
entry:
  %generation = getelementptr i8, ptr %pool, i64 {GENERATION}
  %sleepers = getelementptr i8, ptr %pool, i64 {SLEEPERS}
  %stop_at = getelementptr i8, ptr %pool, i64 {STOP}
  %job_at = getelementptr i8, ptr %pool, i64 {JOB}
  %seq_at = getelementptr i8, ptr %pool, i64 {SEQUENCE}
  %spin_at = getelementptr i8, ptr %pool, i64 {SPIN}
  %joined = getelementptr i8, ptr %pool, i64 {JOINED}
  %me64 = zext i32 %me to i64
  %slot = mul i64 %me64, {LINE}
  %slot_offset = add i64 %slot, {SLOTS}
  %hazard = getelementptr i8, ptr %pool, i64 %slot_offset
  %spin = load i64, ptr %spin_at
  %j = atomicrmw add ptr %joined, i32 1 seq_cst
  br label %idle
idle:
  %last = phi i32 [0, %entry], [%last, %rested], [%g, %done]
  %start = call i64 @llvm.readcyclecounter()
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
  %time = call i64 @llvm.readcyclecounter()
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
  %job = load atomic ptr, ptr %job_at monotonic, align 8
  %seq = load atomic i32, ptr %seq_at monotonic, align 4
  store atomic ptr %job, ptr %hazard seq_cst, align 8
  %g2 = load atomic i32, ptr %generation seq_cst, align 4
  %unchanged = icmp eq i32 %g, %g2
  %there = icmp ne ptr %job, null
  %valid = and i1 %unchanged, %there
  br i1 %valid, label %run, label %done
run:
  call void @work(ptr %pool, ptr %job, i32 %seq, i32 %me)
  br label %done
done:
  store atomic ptr null, ptr %hazard release, align 8
  br label %idle
leave:
  ret void
}}

; Every chunk in order on this thread.
define internal void @alone(ptr %job) {{
entry:
  %fn_at = getelementptr i8, ptr %job, i64 {JOB_FUNCTION}
  %fn = load ptr, ptr %fn_at
  %context_at = getelementptr i8, ptr %job, i64 {JOB_CONTEXT}
  %context = load ptr, ptr %context_at
  %phases_at = getelementptr i8, ptr %job, i64 {JOB_PHASES}
  %phases = load i32, ptr %phases_at
  br label %phase
phase:
  %k = phi i32 [0, %entry], [%k1, %finished]
  %any = icmp ult i32 %k, %phases
  br i1 %any, label %begin, label %leave
begin:
  %k64 = zext i32 %k to i64
  %skip = mul i64 %k64, {phase}
  %offset = add i64 %skip, {PHASES}
  %here = getelementptr i8, ptr %job, i64 %offset
  %n = load i32, ptr %here
  br label %chunk
chunk:
  %c = phi i32 [0, %begin], [%c1, %do]
  %more = icmp ult i32 %c, %n
  br i1 %more, label %do, label %finished
do:
  %c64 = zext i32 %c to i64
  call void %fn(ptr %context, i64 %k64, i64 %c64, i64 0)
  %c1 = add i32 %c, 1
  br label %chunk
finished:
  %k1 = add i32 %k, 1
  br label %phase
leave:
  ret void
}}

; One call of a job. Where the pool is busy with another caller, or the work is smaller than what
; asking the helpers costs, the caller does it alone: no result depends on who did what.
define void @pool_run(ptr %pool, ptr %job) {{
entry:
  %generation = getelementptr i8, ptr %pool, i64 {GENERATION}
  %sleepers = getelementptr i8, ptr %pool, i64 {SLEEPERS}
  %lock = getelementptr i8, ptr %pool, i64 {LOCK}
  %job_at = getelementptr i8, ptr %pool, i64 {JOB}
  %pool_seq = getelementptr i8, ptr %pool, i64 {SEQUENCE}
  %end_at = getelementptr i8, ptr %pool, i64 {LAST_END}
  %spin_at = getelementptr i8, ptr %pool, i64 {SPIN}
  %hot_at = getelementptr i8, ptr %pool, i64 {HOT}
  %cold_at = getelementptr i8, ptr %pool, i64 {COLD}
  %cost_at = getelementptr i8, ptr %job, i64 {JOB_COST}
  %seq_at = getelementptr i8, ptr %job, i64 {JOB_SEQUENCE}
  %parked = load atomic i32, ptr %sleepers monotonic, align 4
  %asleep = icmp ne i32 %parked, 0
  %hot = load i64, ptr %hot_at
  %cold = load i64, ptr %cold_at
  %least = select i1 %asleep, i64 %cold, i64 %hot
  %cost = load i64, ptr %cost_at
  %small = icmp ult i64 %cost, %least
  br i1 %small, label %single, label %try
try:
  %swap = cmpxchg ptr %lock, i32 0, i32 1 acquire monotonic
  %won = extractvalue {{i32, i1}} %swap, 1
  br i1 %won, label %together, label %single
single:
  call void @alone(ptr %job)
  ret void
together:
  %old = load i32, ptr %seq_at
  %seq = add i32 %old, 1
  store atomic i32 %seq, ptr %seq_at monotonic, align 4
  %g0 = atomicrmw add ptr %generation, i32 1 seq_cst
  store atomic ptr %job, ptr %job_at monotonic, align 8
  store atomic i32 %seq, ptr %pool_seq monotonic, align 4
  %g1 = atomicrmw add ptr %generation, i32 1 seq_cst
  %waiting = load atomic i32, ptr %sleepers seq_cst, align 4
  %someone = icmp ne i32 %waiting, 0
  br i1 %someone, label %wake, label %go
wake:
  call void @futex_wake(ptr %generation)
  br label %go
go:
  call void @work(ptr %pool, ptr %job, i32 %seq, i32 0)
  store atomic i32 0, ptr %lock release, align 4
  ret void
}}

; After this no helper is in the job, nor will enter it: its memory may be freed.
define void @pool_retire(ptr %pool, ptr %job) {{
entry:
  %generation = getelementptr i8, ptr %pool, i64 {GENERATION}
  %lock = getelementptr i8, ptr %pool, i64 {LOCK}
  %job_at = getelementptr i8, ptr %pool, i64 {JOB}
  %threads_at = getelementptr i8, ptr %pool, i64 {THREADS}
  %threads = load i32, ptr %threads_at
  br label %try
try:
  %swap = cmpxchg ptr %lock, i32 0, i32 1 acquire monotonic
  %won = extractvalue {{i32, i1}} %swap, 1
  br i1 %won, label %held, label %busy
busy:
  {relax}
  br label %try
held:
  %current = load atomic ptr, ptr %job_at monotonic, align 8
  %mine = icmp eq ptr %current, %job
  br i1 %mine, label %clear, label %check
clear:
  %g0 = atomicrmw add ptr %generation, i32 1 seq_cst
  store atomic ptr null, ptr %job_at monotonic, align 8
  %g1 = atomicrmw add ptr %generation, i32 1 seq_cst
  br label %check
check:
  br label %slot
slot:
  %t = phi i32 [1, %check], [%t1, %free]
  %more = icmp ult i32 %t, %threads
  br i1 %more, label %look, label %out
look:
  %t64 = zext i32 %t to i64
  %line = mul i64 %t64, {LINE}
  %offset = add i64 %line, {SLOTS}
  %hazard = getelementptr i8, ptr %pool, i64 %offset
  br label %wait
wait:
  %in = load atomic ptr, ptr %hazard seq_cst, align 8
  %inside = icmp eq ptr %in, %job
  br i1 %inside, label %pause, label %free
pause:
  {relax}
  br label %wait
free:
  %t1 = add i32 %t, 1
  br label %slot
out:
  store atomic i32 0, ptr %lock release, align 4
  ret void
}}
"""
