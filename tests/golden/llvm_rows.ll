define i32 @tiny_rows(ptr %X, ptr %I, ptr %Y, i64 %S, ptr %scratch) {
kernel.entry:
  %failed.flag = alloca i16
  store i16 0, ptr %failed.flag
  %v.1 = sdiv i64 %S, 1
  br label %enter.1
enter.1:
  %v.49 = icmp slt i64 0, %v.1
  br i1 %v.49, label %loop.1, label %exit.1
loop.1:
  %i.1 = phi i64 [0, %enter.1], [%i.1.next, %next.1]
  %v.2 = mul nsw i64 %i.1, 4
  %v.3 = getelementptr inbounds i8, ptr %I, i64 %v.2
  %v.4 = load i32, ptr %v.3, align 4
  %v.5 = sext i32 %v.4 to i64
  %v.6 = icmp ult i64 %v.5, %S
  %v.7 = select i1 %v.6, i64 %v.5, i64 0
  %v.8 = zext i1 %v.6 to i64
  %v.9 = getelementptr i8, ptr %failed.flag, i64 %v.8
  store i8 1, ptr %v.9
  %v.10 = mul nsw i64 %v.7, 16
  %v.11 = getelementptr inbounds i8, ptr %X, i64 %v.10
  %v.12 = load <4 x float>, ptr %v.11, align 4
  %v.13 = fadd <4 x float> splat (float 0x0000000000000000), %v.12
  %v.14 = shufflevector <4 x float> %v.13, <4 x float> poison, <2 x i32> <i32 0, i32 1>
  %v.15 = shufflevector <4 x float> %v.13, <4 x float> poison, <2 x i32> <i32 2, i32 3>
  %v.16 = fadd <2 x float> %v.14, %v.15
  %v.17 = shufflevector <2 x float> %v.16, <2 x float> poison, <1 x i32> <i32 0>
  %v.18 = shufflevector <2 x float> %v.16, <2 x float> poison, <1 x i32> <i32 1>
  %v.19 = fadd <1 x float> %v.17, %v.18
  %v.20 = extractelement <1 x float> %v.19, i64 0
  store float %v.20, ptr %scratch, align 4
  %v.21 = load i32, ptr %v.3, align 4
  %v.22 = sext i32 %v.21 to i64
  %v.23 = icmp ult i64 %v.22, %S
  %v.24 = select i1 %v.23, i64 %v.22, i64 0
  %v.25 = zext i1 %v.23 to i64
  %v.26 = getelementptr i8, ptr %failed.flag, i64 %v.25
  store i8 1, ptr %v.26
  %v.27 = mul nsw i64 %v.24, 16
  %v.28 = getelementptr inbounds i8, ptr %X, i64 %v.27
  %v.29 = load <4 x float>, ptr %v.28, align 4
  %v.30 = load float, ptr %scratch, align 4
  %v.31 = insertelement <4 x float> poison, float %v.30, i64 0
  %v.32 = shufflevector <4 x float> %v.31, <4 x float> poison, <4 x i32> zeroinitializer
  %v.33 = fdiv <4 x float> %v.29, %v.32
  %v.34 = bitcast <4 x float> %v.33 to <4 x i32>
  %v.35 = lshr <4 x i32> %v.34, splat (i32 16)
  %v.36 = and <4 x i32> %v.35, splat (i32 1)
  %v.37 = add <4 x i32> %v.36, splat (i32 32767)
  %v.38 = add <4 x i32> %v.34, %v.37
  %v.39 = lshr <4 x i32> %v.38, splat (i32 16)
  %v.40 = or <4 x i32> %v.35, splat (i32 64)
  %v.41 = fcmp uno <4 x float> %v.33, %v.33
  %v.42 = select <4 x i1> %v.41, <4 x i32> %v.40, <4 x i32> %v.39
  %v.43 = trunc <4 x i32> %v.42 to <4 x i16>
  %v.44 = zext <4 x i16> %v.43 to <4 x i32>
  %v.45 = shl <4 x i32> %v.44, splat (i32 16)
  %v.46 = bitcast <4 x i32> %v.45 to <4 x float>
  %v.47 = mul nsw i64 %i.1, 8
  %v.48 = getelementptr inbounds i8, ptr %Y, i64 %v.47
  store <4 x i16> %v.43, ptr %v.48, align 2
  br label %next.1
next.1:
  %i.1.next = add nsw i64 %i.1, 1
  %i.1.more = icmp slt i64 %i.1.next, %v.1
  br i1 %i.1.more, label %loop.1, label %exit.1
exit.1:
  %v.50 = mul nsw i64 %v.1, 1
  %failed.code = load i8, ptr %failed.flag
  %failed.any = zext i8 %failed.code to i32
  ret i32 %failed.any
}
