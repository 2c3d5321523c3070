/* SPDX-License-Identifier: MIT */
#ifndef FD_H
#define FD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct err;
struct pollfd;

/* All descriptors made here are close-on-exec. */

/* Listen on a unix socket (type SOCK_STREAM or SOCK_SEQPACKET, may be or-ed
 * with SOCK_NONBLOCK).  A dead socket file in the way is removed, also when
 * children of whoever listened still hold the socket; a live one is ERR_BUSY.
 * mode: permission bits of the socket file.  Returns the descriptor
 * or -1. */
int fd_listen_unix(const char *path, int type, mode_t mode, struct err *err);
/* Connect; ERR_UNAVAILABLE when nobody listens, ERR_BUSY when whoever listens
 * accepts nobody for a second and has a full queue. */
int fd_connect_unix(const char *path, int type, struct err *err);

/* One packet on a SEQPACKET socket, with a descriptor (-1: none).  Sends
 * without SIGPIPE; EAGAIN after timeout_ms (<0: wait for ever) is ERR_TIMEOUT,
 * a peer that is gone is ERR_PROTOCOL. */
int fd_send_packet(int sock, const void *data, size_t len, int fd,
    int timeout_ms, struct err *err);
/* Send at most FD_PACKETS packets, each as fd_send_packet() would, by one call
 * of the kernel, which need not wake their receiver for each.  The caller frees
 * them; on failure some may have been sent. */
#define FD_PACKETS 8
struct fd_packets {
	struct iovec parts[FD_PACKETS];
	size_t count;
};
int fd_send_packets(int sock, struct fd_packets *packets, int timeout_ms,
    struct err *err);
/* Receive one packet into data (at most cap bytes; a longer one, or one with
 * more than one descriptor, is ERR_PROTOCOL).  *fd is set to the received
 * descriptor or -1 (NULL: it is closed).  Returns the length, 0 at end of
 * stream, -1 on error; ERR_TIMEOUT after timeout_ms. */
ssize_t fd_receive_packet(int sock, void *data, size_t cap, int *fd,
    int timeout_ms, struct err *err);
/* Wait until there is something to receive, or timeout_ms are over, or *unless
 * (which may be NULL) happens.  False: that has happened, and nothing else. */
bool fd_wait_unless(int sock, const struct pollfd *unless, int timeout_ms);

/* Lock a file exclusively by flock(2), within timeout_ms; 0 tries once.  The
 * kernel wakes waiting processes in their order.  False: there is no lock. */
bool fd_lock_within(int fd, int64_t timeout_ms);

/* Write everything to a file or pipe, through short writes and EINTR. */
int fd_write_all(int fd, const void *data, size_t len, struct err *err);

/* A signalfd for SIGTERM and SIGINT, in the parent of children also for SIGHUP
 * and SIGCHLD; they are blocked in the process, SIGPIPE is ignored.
 * Nonblocking. */
int fd_signals(bool of_children, struct err *err);
/* Does a signal that has just come repeat the last one?  A terminal and a
 * parent pass on the same Ctrl-C, so two within a second are one.  *last_ms:
 * monotonic time of the last signal that counted; 0: none has.  Only a signal
 * that counts sets it. */
bool fd_signal_is_echo(int64_t *last_ms);

/* Make a directory if it is missing (parents too); mode for those made. */
int fd_make_dirs(const char *path, mode_t mode, struct err *err);

#endif
