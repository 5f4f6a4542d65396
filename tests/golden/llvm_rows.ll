define i32 @tiny_rows(ptr %X, ptr %I, ptr %Y, i64 %S, ptr %scratch) {
kernel.entry:
  %failed.flag = alloca i16
  store i16 0, ptr %failed.flag
  %v.1 = sub nsw i64 %S, 0
  %v.2 = sdiv i64 %v.1, 1
  br label %enter.1
enter.1:
  %v.50 = icmp slt i64 0, %v.2
  br i1 %v.50, label %loop.1, label %exit.1
loop.1:
  %i.1 = phi i64 [0, %enter.1], [%i.1.next, %next.1]
  %v.3 = mul nsw i64 %i.1, 4
  %v.4 = getelementptr inbounds i8, ptr %I, i64 %v.3
  %v.5 = load i32, ptr %v.4, align 4
  %v.6 = sext i32 %v.5 to i64
  %v.7 = icmp ult i64 %v.6, %S
  %v.8 = select i1 %v.7, i64 %v.6, i64 0
  %v.9 = zext i1 %v.7 to i64
  %v.10 = getelementptr i8, ptr %failed.flag, i64 %v.9
  store i8 1, ptr %v.10
  %v.11 = mul nsw i64 %v.8, 16
  %v.12 = getelementptr inbounds i8, ptr %X, i64 %v.11
  %v.13 = load <4 x float>, ptr %v.12, align 4
  %v.14 = fadd <4 x float> splat (float 0x0000000000000000), %v.13
  %v.15 = shufflevector <4 x float> %v.14, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v.16 = shufflevector <4 x float> %v.14, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v.17 = fadd <2 x float> %v.15, %v.16
  %v.18 = shufflevector <2 x float> %v.17, <2 x float> poison, <1 x i32> <i32 0>
  %v.19 = shufflevector <2 x float> %v.17, <2 x float> poison, <1 x i32> <i32 1>
  %v.20 = fadd <1 x float> %v.18, %v.19
  %v.21 = extractelement <1 x float> %v.20, i64 0
  store float %v.21, ptr %scratch, align 4
  %v.22 = load i32, ptr %v.4, align 4
  %v.23 = sext i32 %v.22 to i64
  %v.24 = icmp ult i64 %v.23, %S
  %v.25 = select i1 %v.24, i64 %v.23, i64 0
  %v.26 = zext i1 %v.24 to i64
  %v.27 = getelementptr i8, ptr %failed.flag, i64 %v.26
  store i8 1, ptr %v.27
  %v.28 = mul nsw i64 %v.25, 16
  %v.29 = getelementptr inbounds i8, ptr %X, i64 %v.28
  %v.30 = load <4 x float>, ptr %v.29, align 4
  %v.31 = load float, ptr %scratch, align 4
  %v.32 = insertelement <4 x float> poison, float %v.31, i64 0
  %v.33 = shufflevector <4 x float> %v.32, <4 x float> poison, <4 x i32> zeroinitializer
  %v.34 = fdiv <4 x float> %v.30, %v.33
  %v.35 = bitcast <4 x float> %v.34 to <4 x i32>
  %v.36 = lshr <4 x i32> %v.35, splat (i32 16)
  %v.37 = and <4 x i32> %v.36, splat (i32 1)
  %v.38 = add <4 x i32> %v.37, splat (i32 32767)
  %v.39 = add <4 x i32> %v.35, %v.38
  %v.40 = lshr <4 x i32> %v.39, splat (i32 16)
  %v.41 = or <4 x i32> %v.36, splat (i32 64)
  %v.42 = fcmp uno <4 x float> %v.34, %v.34
  %v.43 = select <4 x i1> %v.42, <4 x i32> %v.41, <4 x i32> %v.40
  %v.44 = trunc <4 x i32> %v.43 to <4 x i16>
  %v.45 = zext <4 x i16> %v.44 to <4 x i32>
  %v.46 = shl <4 x i32> %v.45, splat (i32 16)
  %v.47 = bitcast <4 x i32> %v.46 to <4 x float>
  %v.48 = mul nsw i64 %i.1, 8
  %v.49 = getelementptr inbounds i8, ptr %Y, i64 %v.48
  store <4 x i16> %v.44, ptr %v.49, align 2
  br label %next.1
next.1:
  %i.1.next = add nsw i64 %i.1, 1
  %i.1.more = icmp slt i64 %i.1.next, %v.2
  br i1 %i.1.more, label %loop.1, label %exit.1
exit.1:
  %failed.code = load i8, ptr %failed.flag
  %failed.any = zext i8 %failed.code to i32
  ret i32 %failed.any
}
