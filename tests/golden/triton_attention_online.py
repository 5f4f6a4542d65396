import triton
import triton.language as tl


@triton.jit
def combine_max(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit(do_not_specialize=["S"])
def attention_online(Q, K, V, O, S):
    pid = tl.program_id(0)
    h = pid // tl.cdiv(S, 64)
    m_base = (pid % tl.cdiv(S, 64)) * 64
    m = m_base + tl.arange(0, 64)
    m_exists = m < S
    d = tl.arange(0, 64)
    e = tl.arange(0, 64)
    q = tl.load(Q + h * 64 * S + m[:, None] * 64 + d[None, :], mask=m_exists[:, None], other=0.0)
    top = tl.full((64,), float("-inf"), tl.float32)
    total = tl.full((64,), 0.0, tl.float32)
    y = tl.full((64, 64), 0.0, tl.float32)
    n_full = S // 64 * 64
    for n_base in tl.range(0, n_full, 64):
        n = n_base + tl.arange(0, 64)
        K_tile = tl.load(K + h * 64 * S + n[None, :] * 64 + d[:, None])
        s = tl.dot(q, K_tile) * 0.125
        higher = tl.maximum(top, tl.reduce(s, 1, combine_max), propagate_nan=tl.PropagateNan.ALL)
        p = tl.exp(s - higher[:, None])
        fade = tl.exp(top - higher)
        top = higher
        total = (total * fade) + tl.sum(p, axis=1)
        V_tile = tl.load(V + h * 64 * S + n[:, None] * 64 + e[None, :])
        y = tl.dot(p.to(tl.bfloat16), V_tile, acc=y * fade[:, None])
    for n_base_1 in tl.range(n_full, S, 64, num_stages=1):
        n = n_base_1 + tl.arange(0, 64)
        n_exists = n < S
        K_tile_1 = tl.load(K + h * 64 * S + n[None, :] * 64 + d[:, None], mask=n_exists[None, :], other=0.0)
        s = tl.dot(q, K_tile_1) * 0.125
        higher = tl.maximum(top, tl.reduce(tl.where(n_exists[None, :], s, float("-inf")), 1, combine_max), propagate_nan=tl.PropagateNan.ALL)
        p = tl.exp(s - higher[:, None])
        fade = tl.exp(top - higher)
        top = higher
        total = (total * fade) + tl.sum(tl.where(n_exists[None, :], p, 0.0), axis=1)
        V_tile_1 = tl.load(V + h * 64 * S + n[:, None] * 64 + e[None, :], mask=n_exists[:, None], other=0.0)
        y = tl.dot(tl.where(n_exists[None, :], p.to(tl.bfloat16), 0.0), V_tile_1, acc=y * fade[:, None])
    tl.store(O + h * 64 * S + m[:, None] * 64 + e[None, :], (y / total[:, None]).to(tl.bfloat16), mask=m_exists[:, None])
