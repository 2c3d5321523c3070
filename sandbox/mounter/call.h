/* SPDX-License-Identifier: MIT */
#ifndef CALL_H
#define CALL_H

/*
 * The way into this program and its way into the kernel: it is linked with no C
 * library, so that it makes the calls that stand in mounter.c and no other.
 */

/* clang-format off */
#if defined(__x86_64__)
#define CALL_START "_start: xor %ebp, %ebp; and $-16, %rsp; call mounter_main"
#elif defined(__aarch64__)
#define CALL_START "_start: mov x29, #0; mov x30, #0; b mounter_main"
#else
#error "cells have a seccomp list for x86-64 and AArch64 alone"
#endif
/* clang-format on */

/* Make the system call of that number.  Returns its result, or -errno. */
static inline long
call_kernel(long number, long a, long b, long c, long d, long e)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10),
			 "r"(r8)
			 : "rcx", "r11", "memory");
	return result;
#else
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	return x0;
#endif
}

#endif
