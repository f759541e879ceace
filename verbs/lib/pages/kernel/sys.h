/*
 * System calls without libc. Libraries that hook libc's functions to watch the program's memory do not see
 * these calls, and a child of _Fork may make them. All return -errno on failure.
 */
#ifndef URDMA_PAGES_SYS_H
#define URDMA_PAGES_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
	                 : "=a"(r)
	                 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
	                   "r"(r9)
	                 : "rcx", "r11", "memory");
	return r;
}
#elif defined(__aarch64__)
static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc 0"
	                 : "+r"(x0)
	                 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
	                 : "memory");
	return x0;
}
#else
#error "this part knows the system call convention of x86-64 and arm64"
#endif

static inline bool sys_failed(long r)
{
	return (unsigned long)r > -4096UL;
}

static inline long sys_mmap(uint64_t a, uint64_t len, int prot, int flags,
                            int fd, uint64_t off)
{
	return sys6(SYS_mmap, (long)a, (long)len, prot, flags, fd, (long)off);
}

static inline long sys_munmap(uint64_t a, uint64_t len)
{
	return sys6(SYS_munmap, (long)a, (long)len, 0, 0, 0, 0);
}

static inline long sys_mremap(uint64_t a, uint64_t len, uint64_t newlen,
                              int flags, uint64_t to)
{
	return sys6(SYS_mremap, (long)a, (long)len, (long)newlen, flags,
	            (long)to, 0);
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

static inline long sys_madvise(uint64_t a, uint64_t len, int advice)
{
	return sys6(SYS_madvise, (long)a, (long)len, advice, 0, 0, 0);
}

static inline long sys_mprotect(uint64_t a, uint64_t len, int prot)
{
	return sys6(SYS_mprotect, (long)a, (long)len, prot, 0, 0, 0);
}

static inline long sys_ioctl(int fd, unsigned long req, void *arg)
{
	return sys6(SYS_ioctl, fd, (long)req, (long)arg, 0, 0, 0);
}

static inline long sys_open(const char *path, int flags)
{
	return sys6(SYS_openat, -100 /* AT_FDCWD */, (long)path, flags, 0, 0, 0);
}

static inline long sys_close(int fd)
{
	return sys6(SYS_close, fd, 0, 0, 0, 0, 0);
}

static inline long sys_fstat(int fd, struct stat *st)
{
	return sys6(SYS_fstat, fd, (long)st, 0, 0, 0, 0);
}

static inline long sys_seek(int fd, uint64_t off, int whence)
{
	return sys6(SYS_lseek, fd, (long)off, whence, 0, 0, 0);
}

static inline long sys_read(int fd, void *buf, size_t n)
{
	return sys6(SYS_read, fd, (long)buf, (long)n, 0, 0, 0);
}

static inline long sys_pread(int fd, uint64_t to, uint64_t n, uint64_t off)
{
	return sys6(SYS_pread64, fd, (long)to, (long)n, (long)off, 0, 0);
}

/* Discards [off, off+len) of a memfd, which then reads as zeros. */
static inline long sys_punch(int fd, uint64_t off, uint64_t len)
{
	const int keep_size = 1, punch_hole = 2; /* linux/falloc.h */
	return sys6(SYS_fallocate, fd, keep_size | punch_hole, (long)off,
	            (long)len, 0, 0);
}

static inline long sys_sigmask(int how, const uint64_t *set, uint64_t *old)
{
	return sys6(SYS_rt_sigprocmask, how, (long)set, (long)old, 8, 0, 0);
}

#endif
