import triton
import triton.language as tl


@triton.jit
def matmul_gelu(A, B, bias, C):
    pid = tl.program_id(0)
    band = pid // 192
    first = band * 8
    height = tl.minimum(6 - first, 8)
    m_base = (first + pid % 192 % height) * 64
    m = m_base + tl.arange(0, 64)
    n_base = (pid % 192 // height) * 128
    n = n_base + tl.arange(0, 128)
    acc = tl.full((64, 128), 0.0, tl.float32)
    for k_base in tl.range(0, 768, 32):
        k = k_base + tl.arange(0, 32)
        A_tile = tl.load(A + m[:, None] * 768 + k[None, :])
        B_tile = tl.load(B + k[:, None] * 3072 + n[None, :])
        acc = tl.dot(A_tile, B_tile, acc=acc)
    bias_tile = tl.load(bias + n)
    x = acc + bias_tile[None, :]
    gelu = (0.5 * x) * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(C + m[:, None] * 3072 + n[None, :], gelu.to(tl.bfloat16))
