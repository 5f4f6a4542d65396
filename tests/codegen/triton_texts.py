"""Small kernels that reach the corners of the Triton generator."""

from __future__ import annotations

CONV = """
kernel conv
  memory X: f32[6,7,5]
  memory W: f32[3,3,5,4]
  memory Y: f32[4,6,7]
  whole o<4
  grid oh<6 tile 2, ow<7 tile 4
  for kh<3 point carry row = 0.0:[oh ow o]
    for kw<3 point carry acc = row
      for c<5 tile 4 carry sum = acc
        next sum = dot(X[oh+kh-1, ow+kw-1, c] pad 0.0, W[kh, kw, c, o], over c, acc sum)
      next acc = sum
    next row = acc
  Y[o, oh, ow] := row
"""
RECURRENCE = """
kernel recurrence
  memory X: f32[3,4,5]
  memory W: f32[5,5]
  memory Y: f32[3,4,5]
  whole i<5, j<5
  grid b<4 tile 2
  for t<3 point carry h = 0.0:[b j]
    new = add(dot(rename(h, j -> i), W[i, j], over i), X[t, b, j])
    Y[t, b, j] := new
    next h = new
"""
INTEGERS = """
kernel integers
  memory A: i32[13]
  memory B: i32[13]
  memory F: f32[13]
  memory Q: i32[13]
  memory T: i64[13]
  memory H: i32[]
  memory Z: bool[13]
  memory R: f32[13]
  whole i<13
  Q[i] := div(A[i], B[i])
  T[i] := add(cast(F[i], i64), mul(iota(i), -3:i64))
  H[] := max(neg(abs(A[i])) over i)
  Z[i] := or(not(le(A[i], B[i])), and(cast(B[i], bool), eq(A[i], 3:i32)))
  R[i] := where(lt(F[i], -inf), floor(F[i]), sub(ceil(sqrt(F[i])), min(F[i], 1.0)))
"""
SWAP = """
kernel swap
  memory X: f32[9]
  memory Y: f32[4]
  grid j<4 point
  for i<9 tile 4 carry lo = 0.0 carry hi = 0.5
    next lo = add(hi, prod(X[i] over i))
    next hi = sub(lo, min(X[i] over i))
  Y[j] := mul(lo, hi)
"""
WITHIN = """
kernel within
  memory X: f64[11,6]
  memory Y: f64[11]
  whole c<6
  grid mo<11 tile 6
  for m<11 tile 3 within mo
    Y[m] := sum(mul(X[m, c], 0.1:f64) over c)
"""
MATRIX_I8 = """
kernel bytes
  memory A: i8[5,7]
  memory B: i8[7,6]
  memory C: i32[5,6]
  memory D: i32[5,6]
  whole m<5, n<6
  for k<7 tile 4 carry acc = 0:i32[m n] carry old = 3:i32[m n]
    next acc = dot(A[m, k], B[k, n], over k, acc acc, dtype i32)
    next old = dot(cast(A[m, k], i32), cast(B[k, n], i32), over k, acc old, dtype i32)
  C[m, n] := acc
  D[m, n] := old
"""
GATHER = """
kernel gather
  memory T: f32[5,3]
  memory ids: i64[6]
  memory Y: f32[6,3]
  whole j<3
  grid i<6 tile 4
  Y[i, j] := T[@ids[i], j]
"""
BATCH = """
kernel batch
  memory X: f32[4,3,5]
  memory W: f32[4,5,3]
  memory Y: f32[3,4,3]
  memory Z: f32[4,3]
  whole b<4, i<3, j<3, k<5
  y = dot(X[b, i, k], W[b, k, j], over k, acc 1.0:[b i j])
  Y[i, b, j] := y
  Z[b, j] := add(dot(X[b, 0, k], W[b, k, j], over k), max(y over i))
"""
HALF = """
kernel half
  memory X: f16[9,5]
  memory W: f16[5,6]
  memory H: f16[9,6]
  memory R: f16[9]
  memory N: i8[9]
  whole n<6, k<5
  grid m<9 tile 4
  start = 0.5:f16[m n]
  y = dot(X[m, k+1] pad 2.0, W[k, n], over k, acc start, dtype f16)
  H[m, n] := add(y, where(lt(cast(iota(n), f16), 3.0:f16), 0.25:f16, 0.5:f16))
  R[m] := max(div(exp(X[m, k]), 3.0:f16) over k)
  N[m] := sum(cast(X[m, k], i8) over k)
"""
PLAIN = """
kernel plain
  memory X: f32[2,3]
  memory Y: f32[2,3]
  memory Z: f32[2]
  whole j<3
  grid i<2 tile 2
  scale = 2.0
  Y[i, j] := add(mul(cast(3.0, f32), 1.0), scale)
  Z[i] := dot(X[i, j], X[i, j], over j)
"""
