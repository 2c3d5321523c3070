/* SPDX-License-Identifier: MIT */
/*
 * Mounts a sandbox's volumes in a standby cell (sandbox/broker/prepare.c).
 *
 * The mounter is PID 1 and the only file of a container of its own.  It runs as
 * root, with the rights to mount, without network.  It serves the one request
 * that the broker sends on its socket, and ends.  All that it opens in a volume
 * is the mount point of the next one, whose path is fixed.  No cell can reach
 * it.
 *
 * The kernel makes a mount that is nowhere yet (fsmount) and gives its files
 * the cell's user (an ID map).  Then this program enters the cell's mount
 * namespace and puts the mount in its place (move_mount): no path of the host's
 * ever leads there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "protocol/frame.h"

/*
 * Entry into the program and calls of the kernel.  It is linked with no C
 * library, so it makes the system calls of this file and no others.
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

#define VOLUMES 2
#define ID_MAX INT64_C(0xfffffffe)
#define PACKET_MAX 512 /* from the broker */

/* No call needs more arguments. */
#define CALL(name, a, b, c, d, e) \
	call_kernel(SYS_##name, (long)(a), (long)(b), (long)(c), (long)(d), \
	    (long)(e))

/* Failed step, and its errno. */
struct trouble {
	const char *at; /* NULL: no failure */
	int code;
	bool volume; /* the volume or the cell is the cause */
};

struct request {
	int64_t owner, user, access;
	int process;	      /* pidfd of the cell's first process */
	int devices[VOLUMES]; /* -1: no such volume */
};

static const char *const targets[VOLUMES] = { "/workspace",
	"/workspace/.site-packages" };

/* ---- in the place of a C library ---- */

__asm__(".globl _start\n" CALL_START "\n");

_Noreturn void mounter_main(void);

/* The empty assembly keeps compilers from turning these loops into calls. */
void *
memcpy(void *restrict to, const void *restrict from, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		((char *)to)[i] = ((const char *)from)[i];
		__asm__ volatile("");
	}
	return to;
}

void *
memset(void *to, int byte, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		((char *)to)[i] = (char)byte;
		__asm__ volatile("");
	}
	return to;
}

void *
memchr(const void *bytes, int byte, size_t len)
{
	const char *at = bytes;

	for (size_t i = 0; i < len; i++) {
		if (at[i] == (char)byte)
			return (void *)(uintptr_t)(at + i);
	}
	return NULL;
}

size_t
strlen(const char *text)
{
	size_t len = 0;

	while (text[len] != '\0') {
		__asm__ volatile("");
		len++;
	}
	return len;
}

static _Noreturn void
mounter_exit(int status)
{
	for (;;)
		(void)CALL(exit_group, status, 0, 0, 0, 0);
}

/* Add the text and the number; the caller has made sure of the room for both.
 * Returns the new end. */
static char *
add_number(char *end, const char *text, int64_t value)
{
	char digits[20];
	size_t count = 0;

	memcpy(end, text, strlen(text));
	end += strlen(text);
	do {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	while (count > 0)
		*end++ = digits[--count];
	*end = '\0';
	return end;
}

/* ---- mounts ---- */

/* Note a failure.  These errors mean a damaged volume, too. */
static void
trouble_set(struct trouble *t, const char *at, long result, bool of_volume)
{
	const int code = (int)-result;

	*t = (struct trouble){ at, code,
		of_volume || code == EUCLEAN || code == EIO ||
		    code == EBADMSG };
}

struct option {
	const char *name;
	const char *value; /* NULL: a flag */
};

/* Returns a descriptor of a mount that has no place yet, or -errno. */
static long
make_mount(const char *kind, const struct option *options, bool writable)
{
	long fs = CALL(fsopen, kind, FSOPEN_CLOEXEC, 0, 0, 0);
	long result = fs;

	for (; result >= 0 && options->name != NULL; options++)
		result = CALL(fsconfig, fs,
		    options->value == NULL ? FSCONFIG_SET_FLAG :
					     FSCONFIG_SET_STRING,
		    options->name, options->value, 0);
	if (result >= 0)
		result = CALL(fsconfig, fs, FSCONFIG_CMD_CREATE, 0, 0, 0);
	if (result >= 0)
		result = CALL(fsmount, fs, FSMOUNT_CLOEXEC,
		    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			(writable ? 0 : MOUNT_ATTR_RDONLY),
		    0, 0);
	if (fs >= 0)
		(void)CALL(close, fs, 0, 0, 0, 0);
	return result;
}

/* The options are those of docker.c. */
static long
mount_volume(int device, bool writable)
{
	char source[40];
	const struct option read[] = { { "source", source }, { "ro", NULL },
		{ NULL, NULL } };
	const struct option write[] = { { "source", source },
		{ "discard", NULL }, { "noinit_itable", NULL },
		{ NULL, NULL } };

	(void)add_number(source, "/proc/self/fd/", device);
	return make_mount("ext4", writable ? write : read, writable);
}

/* Make an empty folder for missing packages. */
static long
mount_nothing(int64_t user)
{
	char id[24];
	const struct option options[] = { { "size", "4k" }, { "mode", "0755" },
		{ "uid", id }, { "gid", id }, { NULL, NULL } };

	(void)add_number(id, "", user);
	return make_mount("tmpfs", options, false);
}

/* Open a file of that process.  Returns its descriptor, or -errno. */
static long
open_of_process(long pid, const char *name, int flags)
{
	char path[48];
	char *end = add_number(path, "/proc/", pid);

	memcpy(end, name, strlen(name) + 1);
	return CALL(openat, AT_FDCWD, path, flags | O_CLOEXEC, 0, 0);
}

/* Returns the descriptor of a user namespace in which owner is user, or -errno.
 * A process that does nothing holds it meanwhile. */
static long
make_users(int64_t owner, int64_t user)
{
	static const char *const maps[] = { "/uid_map", "/gid_map" };
	char map[64];
	char *end = add_number(map, "", owner);
	long pid = CALL(clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	long result = pid;

	if (pid == 0) {
		for (;;)
			(void)CALL(ppoll, 0, 0, 0, 0, 0);
	}
	end = add_number(add_number(end, " ", user), " ", 1);
	for (size_t i = 0; i < 2 && result >= 0; i++) {
		long fd = open_of_process(pid, maps[i], O_WRONLY);

		result = fd < 0 ? fd : CALL(write, fd, map, end - map, 0, 0);
		if (fd >= 0)
			(void)CALL(close, fd, 0, 0, 0, 0);
	}
	if (result >= 0)
		result = open_of_process(pid, "/ns/user", O_RDONLY);
	if (pid > 0)
		(void)CALL(kill, pid, SIGKILL, 0, 0, 0);
	return result;
}

/* The files of the mount become the user's. */
static long
give_mount(long mount, long users)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)users };

	return CALL(mount_setattr, mount, "", AT_EMPTY_PATH, &attr,
	    sizeof(attr));
}

/* Put the mount on the target, in the cell's namespace. */
static long
put_mount(long mount, const char *target)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW |
		    O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS };
	long place = CALL(openat2, AT_FDCWD, target, &how, sizeof(how), 0);

	if (place < 0)
		return place;
	return CALL(move_mount, mount, "", place, "",
	    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* Mount both volumes in the cell, or an empty folder for missing packages.  The
 * cell sees none of them before all are ready.  The files of a volume become
 * the user's; an empty folder is the user's already.  The outer volume comes
 * first. */
static void
attach_volumes(const struct request *r, struct trouble *t)
{
	long mounts[VOLUMES];
	long users;
	long result = 0;
	bool of_volume;

	for (size_t i = 0; i < VOLUMES; i++) {
		mounts[i] = r->devices[i] < 0 ?
		    mount_nothing(r->user) :
		    mount_volume(r->devices[i],
			i == 0 && r->access == ACCESS_WRITE);
		if (mounts[i] < 0) {
			trouble_set(t, "mount", mounts[i],
			    mounts[i] == -EINVAL);
			return;
		}
	}
	users = make_users(r->owner, r->user);
	result = users;
	for (size_t i = 0; i < VOLUMES && result >= 0; i++) {
		if (r->devices[i] >= 0)
			result = give_mount(mounts[i], users);
	}
	if (result < 0) {
		trouble_set(t, "give", result, false);
		return;
	}
	result = CALL(setns, r->process, CLONE_NEWNS, 0, 0, 0);
	if (result < 0) {
		trouble_set(t, "enter", result, result == -ESRCH);
		return;
	}
	for (size_t i = 0; i < VOLUMES && result >= 0; i++)
		result = put_mount(mounts[i], targets[i]);
	of_volume = result == -ENOTDIR || result == -ELOOP || result == -ENOENT;
	if (result < 0)
		trouble_set(t, "put", result, of_volume);
}

/* ---- the broker ---- */

static int
connect_broker(void)
{
	struct sockaddr_un where = { .sun_family = AF_UNIX,
		.sun_path = "/run/inline/cell.sock" };
	long sock = CALL(socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0,
	    0);

	if (sock < 0 || CALL(connect, sock, &where, sizeof(where), 0, 0) < 0)
		mounter_exit(1);
	return (int)sock;
}

/* Receive the next part of the request.  Returns the descriptor that came with
 * it, or -1.  Any other packet ends the program. */
static int
mounter_receive_part(int sock, int64_t number, struct frame_view *view)
{
	static char packet[PACKET_MAX];
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} extra = { .bytes = { 0 } };
	struct iovec part = { .iov_base = packet, .iov_len = sizeof(packet) };
	struct msghdr message = { .msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = extra.bytes,
		.msg_controllen = sizeof(extra.bytes) };
	long len = CALL(recvmsg, sock, &message, MSG_CMSG_CLOEXEC, 0, 0);
	int64_t value;
	int fd = -1;

	if (len <= 0 || (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
	    !frame_parse(view, packet, (size_t)len) ||
	    view->kind != FRAME_ATTACH ||
	    !frame_get_int(view, TAG_PART, &value) || value != number)
		mounter_exit(1);
	if (message.msg_controllen >= CMSG_LEN(sizeof(int)) &&
	    extra.head.cmsg_len == CMSG_LEN(sizeof(int)) &&
	    extra.head.cmsg_level == SOL_SOCKET &&
	    extra.head.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&extra.head), sizeof(fd));
	if (fd < 0 && number < VOLUMES)
		mounter_exit(1);
	return fd;
}

/* The request is a packet for the cell, and one for each volume. */
static void
receive_request(int sock, struct request *r)
{
	struct frame_view view;

	r->process = mounter_receive_part(sock, 0, &view);
	if (!frame_get_int(&view, TAG_OWNER, &r->owner) ||
	    !frame_get_int(&view, TAG_USER, &r->user) ||
	    !frame_get_int(&view, TAG_ACCESS, &r->access) || r->owner < 1 ||
	    r->owner > ID_MAX || r->user < 1 || r->user > ID_MAX)
		mounter_exit(1);
	for (size_t i = 0; i < VOLUMES; i++)
		r->devices[i] = mounter_receive_part(sock, (int64_t)i + 1,
		    &view);
}

static void
mounter_send_frame(int sock, struct frame *f)
{
	if (CALL(write, sock, f->data, f->len, 0, 0) < 0)
		mounter_exit(1);
}

static void
send_result(int sock, const struct trouble *t)
{
	static struct frame f;

	frame_start(&f, FRAME_ATTACHED);
	frame_add_int(&f, TAG_CODE, t->code);
	frame_add_int(&f, TAG_WHY,
	    t->at == NULL ? ATTACH_DONE :
		t->volume ? ATTACH_VOLUME :
			    ATTACH_HOST);
	frame_add_text(&f, TAG_TEXT, t->at == NULL ? "" : t->at);
	mounter_send_frame(sock, &f);
}

/* Are this kernel and these rights enough?  They are tried once, before a
 * client waits.  Linux before 5.12 has no ID maps of mounts; before 6.3 it
 * refuses them for this kind of mount alone. */
static void
try_rights(struct trouble *t)
{
	long mount = mount_nothing(1);
	long users = mount < 0 ? mount : make_users(1, 2);
	long given = users < 0 ? users : give_mount(mount, users);

	if (given < 0 && given != -EINVAL)
		trouble_set(t, mount < 0 ? "mount" : "give", given, false);
	(void)CALL(close, mount, 0, 0, 0, 0);
	(void)CALL(close, users, 0, 0, 0, 0);
}

void
mounter_main(void)
{
	static struct frame ready;
	struct trouble trouble = { .at = NULL };
	struct request request;
	int sock = connect_broker();

	try_rights(&trouble);
	if (trouble.at == NULL) {
		frame_start(&ready, FRAME_READY);
		mounter_send_frame(sock, &ready);
		receive_request(sock, &request);
		attach_volumes(&request, &trouble);
	}
	send_result(sock, &trouble);
	mounter_exit(0);
}
