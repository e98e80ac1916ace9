//go:build !purego

#include "textflag.h"

// UPDATE takes 64 samples at a time (offset R9), as many as it takes to hide the time
// that an addition takes, and twice all components: ADD1 adds u_c V_c to a sum, ADD2
// adds u_c r to a row of acc.
#define UPDATE(ADD1, ADD2) \
	MOVQ acc_base+0(FP), AX      \
	MOVQ v_base+24(FP), BX       \
	MOVQ x_base+48(FP), CX       \
	MOVQ x_len+56(FP), DI        \
	MOVQ u_base+72(FP), DX       \
	MOVQ u_len+80(FP), SI        \
	SHLQ $3, DI                  \
	XORQ R9, R9                  \
samples:                         \
	VPXORQ Z0, Z0, Z0            \
	VPXORQ Z1, Z1, Z1            \
	VPXORQ Z2, Z2, Z2            \
	VPXORQ Z3, Z3, Z3            \
	VPXORQ Z4, Z4, Z4            \
	VPXORQ Z5, Z5, Z5            \
	VPXORQ Z6, Z6, Z6            \
	VPXORQ Z7, Z7, Z7            \
	LEAQ (BX)(R9*1), R10         \
	XORQ R11, R11                \
product:                         \
	VBROADCASTSD (DX)(R11*8), Z8 \
	ADD1(0, Z0, Z9)              \
	ADD1(64, Z1, Z10)            \
	ADD1(128, Z2, Z11)           \
	ADD1(192, Z3, Z12)           \
	ADD1(256, Z4, Z9)            \
	ADD1(320, Z5, Z10)           \
	ADD1(384, Z6, Z11)           \
	ADD1(448, Z7, Z12)           \
	ADDQ DI, R10                 \
	INCQ R11                     \
	CMPQ R11, SI                 \
	JLT  product                 \
	VMOVUPD 0(CX)(R9*1), Z16     \
	VMOVUPD 64(CX)(R9*1), Z17    \
	VMOVUPD 128(CX)(R9*1), Z18   \
	VMOVUPD 192(CX)(R9*1), Z19   \
	VMOVUPD 256(CX)(R9*1), Z20   \
	VMOVUPD 320(CX)(R9*1), Z21   \
	VMOVUPD 384(CX)(R9*1), Z22   \
	VMOVUPD 448(CX)(R9*1), Z23   \
	VDIVPD Z0, Z16, Z16          \
	VDIVPD Z1, Z17, Z17          \
	VDIVPD Z2, Z18, Z18          \
	VDIVPD Z3, Z19, Z19          \
	VDIVPD Z4, Z20, Z20          \
	VDIVPD Z5, Z21, Z21          \
	VDIVPD Z6, Z22, Z22          \
	VDIVPD Z7, Z23, Z23          \
	LEAQ (AX)(R9*1), R10         \
	XORQ R11, R11                \
sums:                            \
	VBROADCASTSD (DX)(R11*8), Z8 \
	VMOVUPD 0(R10), Z0           \
	VMOVUPD 64(R10), Z1          \
	VMOVUPD 128(R10), Z2         \
	VMOVUPD 192(R10), Z3         \
	VMOVUPD 256(R10), Z4         \
	VMOVUPD 320(R10), Z5         \
	VMOVUPD 384(R10), Z6         \
	VMOVUPD 448(R10), Z7         \
	ADD2(Z16, Z0, Z9)            \
	ADD2(Z17, Z1, Z10)           \
	ADD2(Z18, Z2, Z11)           \
	ADD2(Z19, Z3, Z12)           \
	ADD2(Z20, Z4, Z9)            \
	ADD2(Z21, Z5, Z10)           \
	ADD2(Z22, Z6, Z11)           \
	ADD2(Z23, Z7, Z12)           \
	VMOVUPD Z0, 0(R10)           \
	VMOVUPD Z1, 64(R10)          \
	VMOVUPD Z2, 128(R10)         \
	VMOVUPD Z3, 192(R10)         \
	VMOVUPD Z4, 256(R10)         \
	VMOVUPD Z5, 320(R10)         \
	VMOVUPD Z6, 384(R10)         \
	VMOVUPD Z7, 448(R10)         \
	ADDQ DI, R10                 \
	INCQ R11                     \
	CMPQ R11, SI                 \
	JLT  sums                    \
	ADDQ $512, R9                \
	CMPQ R9, DI                  \
	JLT  samples                 \
	VZEROUPPER                   \
	RET

#define ROUNDED1(off, sum, t) VMULPD off(R10), Z8, t; VADDPD t, sum, sum
#define ROUNDED2(r, sum, t) VMULPD r, Z8, t; VADDPD t, sum, sum
#define FUSED1(off, sum, t) VFMADD231PD off(R10), Z8, sum
#define FUSED2(r, sum, t) VFMADD231PD r, Z8, sum

// func updateRounded(acc, v, x, u []float64)
TEXT ·updateRounded(SB), NOSPLIT, $0-96
	UPDATE(ROUNDED1, ROUNDED2)

// func updateFused(acc, v, x, u []float64)
TEXT ·updateFused(SB), NOSPLIT, $0-96
	UPDATE(FUSED1, FUSED2)
