; Functions that the source of CPU kernels calls, where c, a, b and s are its variables. Taichi links them into a kernel: its
; own CPU compiler never contracts a product and a sum, and reduces a vector element by element.
;
;   muladd.f32(c, a, b)            c += a * b for vectors c and b and a scalar a, rounded once if the CPU has FMA
;   muladd.f32_vectors(c, a, b)    the same for a vector a
;   muladd.f32_sum(s, c)           s = the sum of the elements of c, by halves
;   muladd.f32_affine(c, a, b)     c = c * a + b for a vector c and scalars a and b, rounded once
;   muladd.f32_horner(c, b, a)     c = c * b + a for vectors c and b and a scalar a: a step of Horner's method
;   muladd.f32_ldexp(c, b)         c = c * 2**b for integers b, by two powers, so that the result may be denormal
;   muladd.f32_frexp(c, b)         inverse of f32_ldexp: an integer b, and c in [sqrt(1/2), sqrt(2)), for c above 0
;
; and likewise f64. With the address p of sixteen floats in memory that is not read soon:
;
;   muladd.stream_store(p, v)      store v at p with a non-temporal store: a regular one would first load the cache line
;   muladd.store_fence()           a fence that makes these stores visible to other cores
;
; With the address p of an element of an array, at any alignment, and likewise f64:
;
;   muladd.f32_load(v, p, n)       v = the n elements from p, at most sixteen, then zeros
;   muladd.f32_store(p, v, n)      store the first n elements of v from p
;
; And with the address p of an int that all cores share:
;
;   muladd.barrier_reset(p)        reset the barrier
;   muladd.barrier_wait(p, n)      arrive at the barrier, and spin until n have arrived
;
; `make bitcode` assembles muladd.bc from this file.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"

define void @f32(<16 x float>* %c, float* %a, <16 x float>* %b) alwaysinline {
  %number = load float, float* %a, align 4
  %first = insertelement <16 x float> undef, float %number, i32 0
  %each = shufflevector <16 x float> %first, <16 x float> undef, <16 x i32> zeroinitializer
  %vector = load <16 x float>, <16 x float>* %b, align 64
  %before = load <16 x float>, <16 x float>* %c, align 64
  %after = call <16 x float> @llvm.fmuladd.v16f32(<16 x float> %each, <16 x float> %vector, <16 x float> %before)
  store <16 x float> %after, <16 x float>* %c, align 64
  ret void
}

define void @f32_vectors(<16 x float>* %c, <16 x float>* %a, <16 x float>* %b) alwaysinline {
  %left = load <16 x float>, <16 x float>* %a, align 64
  %right = load <16 x float>, <16 x float>* %b, align 64
  %before = load <16 x float>, <16 x float>* %c, align 64
  %after = call <16 x float> @llvm.fmuladd.v16f32(<16 x float> %left, <16 x float> %right, <16 x float> %before)
  store <16 x float> %after, <16 x float>* %c, align 64
  ret void
}

define void @f32_sum(float* %s, <16 x float>* %c) alwaysinline {
  %sum16 = load <16 x float>, <16 x float>* %c, align 64
  %low16 = shufflevector <16 x float> %sum16, <16 x float> undef, <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>
  %high16 = shufflevector <16 x float> %sum16, <16 x float> undef, <8 x i32> <i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>
  %sum8 = fadd <8 x float> %low16, %high16
  %low8 = shufflevector <8 x float> %sum8, <8 x float> undef, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %high8 = shufflevector <8 x float> %sum8, <8 x float> undef, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %sum4 = fadd <4 x float> %low8, %high8
  %low4 = shufflevector <4 x float> %sum4, <4 x float> undef, <2 x i32> <i32 0, i32 1>
  %high4 = shufflevector <4 x float> %sum4, <4 x float> undef, <2 x i32> <i32 2, i32 3>
  %sum2 = fadd <2 x float> %low4, %high4
  %low2 = shufflevector <2 x float> %sum2, <2 x float> undef, <1 x i32> <i32 0>
  %high2 = shufflevector <2 x float> %sum2, <2 x float> undef, <1 x i32> <i32 1>
  %sum1 = fadd <1 x float> %low2, %high2
  %total = extractelement <1 x float> %sum1, i32 0
  store float %total, float* %s, align 4
  ret void
}

define void @f32_affine(<16 x float>* %c, float* %a, float* %b) alwaysinline {
  %by = load float, float* %a, align 4
  %by1 = insertelement <16 x float> undef, float %by, i32 0
  %by16 = shufflevector <16 x float> %by1, <16 x float> undef, <16 x i32> zeroinitializer
  %more = load float, float* %b, align 4
  %more1 = insertelement <16 x float> undef, float %more, i32 0
  %more16 = shufflevector <16 x float> %more1, <16 x float> undef, <16 x i32> zeroinitializer
  %before = load <16 x float>, <16 x float>* %c, align 64
  %after = call <16 x float> @llvm.fmuladd.v16f32(<16 x float> %before, <16 x float> %by16, <16 x float> %more16)
  store <16 x float> %after, <16 x float>* %c, align 64
  ret void
}

define void @f32_horner(<16 x float>* %c, <16 x float>* %b, float* %a) alwaysinline {
  %more = load float, float* %a, align 4
  %more1 = insertelement <16 x float> undef, float %more, i32 0
  %more16 = shufflevector <16 x float> %more1, <16 x float> undef, <16 x i32> zeroinitializer
  %by = load <16 x float>, <16 x float>* %b, align 64
  %before = load <16 x float>, <16 x float>* %c, align 64
  %after = call <16 x float> @llvm.fmuladd.v16f32(<16 x float> %before, <16 x float> %by, <16 x float> %more16)
  store <16 x float> %after, <16 x float>* %c, align 64
  ret void
}

define void @f32_ldexp(<16 x float>* %c, <16 x float>* %b) alwaysinline {
  %float = load <16 x float>, <16 x float>* %b, align 64
  %whole = fptosi <16 x float> %float to <16 x i32>
  %half = ashr <16 x i32> %whole, <i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1, i32 1>
  %rest = sub <16 x i32> %whole, %half
  %half_up = shl <16 x i32> %half, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %rest_up = shl <16 x i32> %rest, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %one1 = insertelement <16 x i32> undef, i32 1065353216, i32 0
  %one16 = shufflevector <16 x i32> %one1, <16 x i32> undef, <16 x i32> zeroinitializer
  %half_bits = add <16 x i32> %half_up, %one16
  %rest_bits = add <16 x i32> %rest_up, %one16
  %half_power = bitcast <16 x i32> %half_bits to <16 x float>
  %rest_power = bitcast <16 x i32> %rest_bits to <16 x float>
  %before = load <16 x float>, <16 x float>* %c, align 64
  %halfway = fmul <16 x float> %before, %half_power
  %after = fmul <16 x float> %halfway, %rest_power
  store <16 x float> %after, <16 x float>* %c, align 64
  ret void
}

define void @f32_frexp(<16 x float>* %c, <16 x float>* %b) alwaysinline {
  %before = load <16 x float>, <16 x float>* %c, align 64
  %bits = bitcast <16 x float> %before to <16 x i32>
  %least1 = insertelement <16 x i32> undef, i32 1060439283, i32 0
  %least = shufflevector <16 x i32> %least1, <16 x i32> undef, <16 x i32> zeroinitializer
  %above = sub <16 x i32> %bits, %least
  %whole = ashr <16 x i32> %above, <i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23, i32 23>
  %power = sitofp <16 x i32> %whole to <16 x float>
  store <16 x float> %power, <16 x float>* %b, align 64
  %part = and <16 x i32> %above, <i32 8388607, i32 8388607, i32 8388607, i32 8388607, i32 8388607, i32 8388607, i32 8388607, i32 8388607, i32 8388607, i32 8388607, i32 8388607, i32 8388607, i32 8388607, i32 8388607, i32 8388607, i32 8388607>
  %left = add <16 x i32> %part, %least
  %after = bitcast <16 x i32> %left to <16 x float>
  store <16 x float> %after, <16 x float>* %c, align 64
  ret void
}

declare <16 x float> @llvm.fmuladd.v16f32(<16 x float>, <16 x float>, <16 x float>)

define void @f64(<8 x double>* %c, double* %a, <8 x double>* %b) alwaysinline {
  %number = load double, double* %a, align 8
  %first = insertelement <8 x double> undef, double %number, i32 0
  %each = shufflevector <8 x double> %first, <8 x double> undef, <8 x i32> zeroinitializer
  %vector = load <8 x double>, <8 x double>* %b, align 64
  %before = load <8 x double>, <8 x double>* %c, align 64
  %after = call <8 x double> @llvm.fmuladd.v8f64(<8 x double> %each, <8 x double> %vector, <8 x double> %before)
  store <8 x double> %after, <8 x double>* %c, align 64
  ret void
}

define void @f64_vectors(<8 x double>* %c, <8 x double>* %a, <8 x double>* %b) alwaysinline {
  %left = load <8 x double>, <8 x double>* %a, align 64
  %right = load <8 x double>, <8 x double>* %b, align 64
  %before = load <8 x double>, <8 x double>* %c, align 64
  %after = call <8 x double> @llvm.fmuladd.v8f64(<8 x double> %left, <8 x double> %right, <8 x double> %before)
  store <8 x double> %after, <8 x double>* %c, align 64
  ret void
}

define void @f64_sum(double* %s, <8 x double>* %c) alwaysinline {
  %sum8 = load <8 x double>, <8 x double>* %c, align 64
  %low8 = shufflevector <8 x double> %sum8, <8 x double> undef, <4 x i32> <i32 0, i32 1, i32 2, i32 3>
  %high8 = shufflevector <8 x double> %sum8, <8 x double> undef, <4 x i32> <i32 4, i32 5, i32 6, i32 7>
  %sum4 = fadd <4 x double> %low8, %high8
  %low4 = shufflevector <4 x double> %sum4, <4 x double> undef, <2 x i32> <i32 0, i32 1>
  %high4 = shufflevector <4 x double> %sum4, <4 x double> undef, <2 x i32> <i32 2, i32 3>
  %sum2 = fadd <2 x double> %low4, %high4
  %low2 = shufflevector <2 x double> %sum2, <2 x double> undef, <1 x i32> <i32 0>
  %high2 = shufflevector <2 x double> %sum2, <2 x double> undef, <1 x i32> <i32 1>
  %sum1 = fadd <1 x double> %low2, %high2
  %total = extractelement <1 x double> %sum1, i32 0
  store double %total, double* %s, align 8
  ret void
}

declare <8 x double> @llvm.fmuladd.v8f64(<8 x double>, <8 x double>, <8 x double>)

define void @stream_store(i64* %p, <16 x float>* %v) alwaysinline {
  %address = load i64, i64* %p, align 8
  %place = inttoptr i64 %address to <16 x float>*
  %vector = load <16 x float>, <16 x float>* %v, align 64
  store <16 x float> %vector, <16 x float>* %place, align 64, !nontemporal !0
  ret void
}

define void @store_fence() alwaysinline {
  call void @llvm.x86.sse.sfence()
  ret void
}

declare void @llvm.x86.sse.sfence()
!0 = !{i32 1}

define void @barrier_reset(i64* %p) alwaysinline {
  %address = load i64, i64* %p, align 8
  %count = inttoptr i64 %address to i32*
  store atomic i32 0, i32* %count seq_cst, align 4
  ret void
}

define void @barrier_wait(i64* %p, i32* %n) noinline {
  %address = load i64, i64* %p, align 8
  %wanted = load i32, i32* %n, align 4
  %count = inttoptr i64 %address to i32*
  %before = atomicrmw add i32* %count, i32 1 seq_cst, align 4
  br label %look
look:
  %rounds = phi i32 [ 0, %0 ], [ %next, %again ]
  %come = load atomic i32, i32* %count acquire, align 4
  %all = icmp sge i32 %come, %wanted
  br i1 %all, label %done, label %wait
wait:
  call void @llvm.x86.sse2.pause()
  %next = add i32 %rounds, 1
  %part = and i32 %next, 511
  %long = icmp eq i32 %part, 0
  br i1 %long, label %yield, label %again
yield:
  %ignored = call i32 @sched_yield()
  br label %again
again:
  br label %look
done:
  ret void
}

declare void @llvm.x86.sse2.pause()
declare i32 @sched_yield()

define void @f32_load(<16 x float>* %v, i64* %p, i32* %n) alwaysinline {
  %address = load i64, i64* %p, align 8
  %place = inttoptr i64 %address to <16 x float>*
  %count = load i32, i32* %n, align 4
  %count1 = insertelement <16 x i32> undef, i32 %count, i32 0
  %counts = shufflevector <16 x i32> %count1, <16 x i32> undef, <16 x i32> zeroinitializer
  %mask = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %counts
  %vector = call <16 x float> @llvm.masked.load.v16f32.p0v16f32(<16 x float>* %place, i32 4, <16 x i1> %mask, <16 x float> zeroinitializer)
  store <16 x float> %vector, <16 x float>* %v, align 64
  ret void
}

define void @f32_store(i64* %p, <16 x float>* %v, i32* %n) alwaysinline {
  %address = load i64, i64* %p, align 8
  %place = inttoptr i64 %address to <16 x float>*
  %count = load i32, i32* %n, align 4
  %count1 = insertelement <16 x i32> undef, i32 %count, i32 0
  %counts = shufflevector <16 x i32> %count1, <16 x i32> undef, <16 x i32> zeroinitializer
  %mask = icmp slt <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %counts
  %vector = load <16 x float>, <16 x float>* %v, align 64
  call void @llvm.masked.store.v16f32.p0v16f32(<16 x float> %vector, <16 x float>* %place, i32 4, <16 x i1> %mask)
  ret void
}

declare <16 x float> @llvm.masked.load.v16f32.p0v16f32(<16 x float>*, i32, <16 x i1>, <16 x float>)
declare void @llvm.masked.store.v16f32.p0v16f32(<16 x float>, <16 x float>*, i32, <16 x i1>)

define void @f64_load(<8 x double>* %v, i64* %p, i32* %n) alwaysinline {
  %address = load i64, i64* %p, align 8
  %place = inttoptr i64 %address to <8 x double>*
  %count = load i32, i32* %n, align 4
  %count1 = insertelement <8 x i32> undef, i32 %count, i32 0
  %counts = shufflevector <8 x i32> %count1, <8 x i32> undef, <8 x i32> zeroinitializer
  %mask = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %counts
  %vector = call <8 x double> @llvm.masked.load.v8f64.p0v8f64(<8 x double>* %place, i32 8, <8 x i1> %mask, <8 x double> zeroinitializer)
  store <8 x double> %vector, <8 x double>* %v, align 64
  ret void
}

define void @f64_store(i64* %p, <8 x double>* %v, i32* %n) alwaysinline {
  %address = load i64, i64* %p, align 8
  %place = inttoptr i64 %address to <8 x double>*
  %count = load i32, i32* %n, align 4
  %count1 = insertelement <8 x i32> undef, i32 %count, i32 0
  %counts = shufflevector <8 x i32> %count1, <8 x i32> undef, <8 x i32> zeroinitializer
  %mask = icmp slt <8 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7>, %counts
  %vector = load <8 x double>, <8 x double>* %v, align 64
  call void @llvm.masked.store.v8f64.p0v8f64(<8 x double> %vector, <8 x double>* %place, i32 8, <8 x i1> %mask)
  ret void
}

declare <8 x double> @llvm.masked.load.v8f64.p0v8f64(<8 x double>*, i32, <8 x i1>, <8 x double>)
declare void @llvm.masked.store.v8f64.p0v8f64(<8 x double>, <8 x double>*, i32, <8 x i1>)
