"""The five proof kernels: one text each, only tile sizes, layouts and halos differ by target."""

from __future__ import annotations

from rooftile.ir.tile.records import Kernel
from rooftile.ir.tile.text import parse
from rooftile.ir.tile.verify import verify


def matmul_gelu(
    rows: int | str,
    inner: int,
    cols: int,
    m: int,
    n: int,
    k: int,
    dtype: str = "f32",
    layout: str = "",
) -> Kernel:
    """`gelu(A @ B + bias)`, the erf form. `layout` of B, for example `layout 1/32 0 1%32`."""
    return _kernel(f"""
kernel matmul_gelu
  memory A: {dtype}[{rows},{inner}]
  memory B: {dtype}[{inner},{cols}] {layout}
  memory bias: f32[{cols}]
  memory C: {dtype}[{rows},{cols}]
  grid m<{rows} tile {m}, n<{cols} tile {n}
  for k<{inner} tile {k} carry acc = 0.0:[m n]
    next acc = dot(A[m, k], B[k, n], over k, acc acc)
  x = add(acc, bias[n])
  gelu = mul(mul(0.5, x), add(1.0, erf(mul(x, 0.7071067811865476))))
  C[m, n] := cast(gelu, {dtype})
""")


def softmax(rows: int | str, cols: int, r: int, dtype: str = "f32") -> Kernel:
    """Softmax of each row of X, whole rows at a time."""
    return _kernel(f"""
kernel softmax
  memory X: {dtype}[{rows},{cols}]
  memory Y: {dtype}[{rows},{cols}]
  whole c<{cols}
  grid r<{rows} tile {r}
  x = cast(X[r, c], f32)
  top = max(x over c)
  p = exp(sub(x, top))
  total = sum(p over c)
  Y[r, c] := cast(div(p, total), {dtype})
""")


def depthwise(
    height: int,
    width: int,
    channels: int,
    oh: int,
    ow: int,
    c: int,
    dtype: str = "f32",
    halo: str = "",
) -> Kernel:
    """Depthwise 3x3 convolution, padding 1, plus bias, then relu6; channels last."""
    return _kernel(f"""
kernel depthwise
  memory X: {dtype}[{height},{width},{channels}] {halo}
  memory W: {dtype}[3,3,{channels}]
  memory bias: f32[{channels}]
  memory Y: {dtype}[{height},{width},{channels}]
  grid oh<{height} tile {oh}, c<{channels} tile {c}, ow<{width} tile {ow}
  for kh<3 point carry row = 0.0:[oh ow c]
    for kw<3 point carry acc = row
      x = cast(X[oh+kh-1, ow+kw-1, c] pad 0.0, f32)
      next acc = add(acc, mul(x, cast(W[kh, kw, c], f32)))
    next row = acc
  Y[oh, ow, c] := cast(min(max(add(row, bias[c]), 0.0), 6.0), {dtype})
""")


def attention(heads: int, length: int, head: int, m: int, dtype: str = "f32") -> Kernel:
    """softmax(Q K' / sqrt(head)) V with whole rows of scores in one tile."""
    return _kernel(f"""
kernel attention
  memory Q: {dtype}[{heads},{length},{head}]
  memory K: {dtype}[{heads},{length},{head}]
  memory V: {dtype}[{heads},{length},{head}]
  memory O: {dtype}[{heads},{length},{head}]
  whole n<{length}, d<{head}, e<{head}
  grid h<{heads} point, m<{length} tile {m}
  s = mul(dot(Q[h, m, d], K[h, n, d], over d), {head**-0.5})
  top = max(s over n)
  p = exp(sub(s, top))
  total = sum(p over n)
  y = dot(cast(p, {dtype}), V[h, n, e], over n)
  O[h, m, e] := cast(div(y, total), {dtype})
""")


def attention_online(
    heads: int, head: int, m: int, n: int, dtype: str = "f32", length: int | str = "S"
) -> Kernel:
    """The same with the running maximum and rescaled sums; any number S of queries and keys."""
    return _kernel(f"""
kernel attention_online
  memory Q: {dtype}[{heads},{length},{head}]
  memory K: {dtype}[{heads},{length},{head}]
  memory V: {dtype}[{heads},{length},{head}]
  memory O: {dtype}[{heads},{length},{head}]
  whole d<{head}, e<{head}
  grid h<{heads} point, m<{length} tile {m}
  q = Q[h, m, d]
  for n<{length} tile {n} carry top = -inf:[m] carry total = 0.0:[m] carry y = 0.0:[m e]
    s = mul(dot(q, K[h, n, d], over d), {head**-0.5})
    higher = max(top, max(s over n))
    p = exp(sub(s, higher))
    fade = exp(sub(top, higher))
    next top = higher
    next total = add(mul(total, fade), sum(p over n))
    next y = dot(cast(p, {dtype}), V[h, n, e], over n, acc mul(y, fade))
  O[h, m, e] := cast(div(y, total), {dtype})
""")


def _kernel(text: str) -> Kernel:
    return verify(parse(text))
