define i32 @tiny_dot(ptr %A, ptr %B, ptr %C, ptr %scratch) {
kernel.entry:
  %v.1 = load float, ptr %A, align 4
  %v.2 = load <16 x float>, ptr %B, align 4
  %v.3 = insertelement <16 x float> poison, float %v.1, i64 0
  %v.4 = shufflevector <16 x float> %v.3, <16 x float> poison, <16 x i32> zeroinitializer
  %v.5 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v.4, <16 x float> %v.2, <16 x float> splat (float 0x0000000000000000))
  %v.6 = getelementptr inbounds i8, ptr %A, i64 12
  %v.7 = load float, ptr %v.6, align 4
  %v.8 = insertelement <16 x float> poison, float %v.7, i64 0
  %v.9 = shufflevector <16 x float> %v.8, <16 x float> poison, <16 x i32> zeroinitializer
  %v.10 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v.9, <16 x float> %v.2, <16 x float> splat (float 0x0000000000000000))
  %v.11 = getelementptr inbounds i8, ptr %A, i64 4
  %v.12 = load float, ptr %v.11, align 4
  %v.13 = getelementptr inbounds i8, ptr %B, i64 64
  %v.14 = load <16 x float>, ptr %v.13, align 4
  %v.15 = insertelement <16 x float> poison, float %v.12, i64 0
  %v.16 = shufflevector <16 x float> %v.15, <16 x float> poison, <16 x i32> zeroinitializer
  %v.17 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v.16, <16 x float> %v.14, <16 x float> %v.5)
  %v.18 = getelementptr inbounds i8, ptr %A, i64 16
  %v.19 = load float, ptr %v.18, align 4
  %v.20 = insertelement <16 x float> poison, float %v.19, i64 0
  %v.21 = shufflevector <16 x float> %v.20, <16 x float> poison, <16 x i32> zeroinitializer
  %v.22 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v.21, <16 x float> %v.14, <16 x float> %v.10)
  %v.23 = getelementptr inbounds i8, ptr %A, i64 8
  %v.24 = load float, ptr %v.23, align 4
  %v.25 = getelementptr inbounds i8, ptr %B, i64 128
  %v.26 = load <16 x float>, ptr %v.25, align 4
  %v.27 = insertelement <16 x float> poison, float %v.24, i64 0
  %v.28 = shufflevector <16 x float> %v.27, <16 x float> poison, <16 x i32> zeroinitializer
  %v.29 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v.28, <16 x float> %v.26, <16 x float> %v.17)
  %v.30 = getelementptr inbounds i8, ptr %A, i64 20
  %v.31 = load float, ptr %v.30, align 4
  %v.32 = insertelement <16 x float> poison, float %v.31, i64 0
  %v.33 = shufflevector <16 x float> %v.32, <16 x float> poison, <16 x i32> zeroinitializer
  %v.34 = call <16 x float> @llvm.fma.v16f32(<16 x float> %v.33, <16 x float> %v.26, <16 x float> %v.22)
  %v.35 = fcmp ogt <16 x float> splat (float 0x0000000000000000), %v.29
  %v.36 = select <16 x i1> %v.35, <16 x float> splat (float 0x0000000000000000), <16 x float> %v.29
  %v.37 = fcmp ogt <16 x float> splat (float 0x0000000000000000), %v.34
  %v.38 = select <16 x i1> %v.37, <16 x float> splat (float 0x0000000000000000), <16 x float> %v.34
  store <16 x float> %v.36, ptr %C, align 4
  %v.39 = getelementptr inbounds i8, ptr %C, i64 64
  store <16 x float> %v.38, ptr %v.39, align 4
  ret i32 0
}
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
