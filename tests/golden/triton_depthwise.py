import triton
import triton.language as tl


@triton.jit
def depthwise(X, W, bias, Y):
    pid = tl.program_id(0)
    oh_base = (pid // 14) * 2
    oh = oh_base + tl.arange(0, 2)
    c_base = (pid // 7 % 2) * 64
    c = c_base + tl.arange(0, 64)
    ow_base = (pid % 7) * 8
    ow = ow_base + tl.arange(0, 8)
    row = tl.full((2, 8, 64), 0.0, tl.float32)
    for kh in tl.static_range(0, 3, 1):
        acc = row
        for kw in tl.static_range(0, 3, 1):
            X_0 = kh + oh - 1
            X_1 = kw + ow - 1
            x = tl.load(X + X_0[:, None, None] * 7168 + X_1[None, :, None] * 128 + c[None, None, :], mask=(X_0[:, None, None] >= 0) & (X_0[:, None, None] < 56) & (X_1[None, :, None] >= 0) & (X_1[None, :, None] < 56), other=0.0)
            W_tile = tl.load(W + kh * 384 + kw * 128 + c)
            acc = acc + (x * W_tile[None, None, :])
        row = acc
    bias_tile = tl.load(bias + c)
    tl.store(Y + oh[:, None, None] * 7168 + ow[None, :, None] * 128 + c[None, None, :], tl.minimum(tl.maximum(row + bias_tile[None, None, :], 0.0, propagate_nan=tl.PropagateNan.ALL), 6.0, propagate_nan=tl.PropagateNan.ALL))
