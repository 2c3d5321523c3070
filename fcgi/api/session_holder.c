#include "session_holder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>

#include "metrics.h"

#include "../../sandbox/base/buf.h"
#include "../../sandbox/base/cleanup.h"
#include "../../sandbox/base/clock.h"
#include "../../sandbox/base/err.h"
#include "../../sandbox/base/fd.h"
#include "../../sandbox/base/log.h"
#include "../../sandbox/protocol/lease.h"

#define PATH_MAX_BYTES 4096
/* Who waits for a session holds one of il-api's IL_API_SESSIONS processes: were
 * it more, the commands of one session could keep all others waiting. */
#define WAITING_MAX 1
#define ASK_MS 1000
#define END_MS 5000

/* One byte each way; but what begins is a struct question, and the last word to
 * who has the cell may be a FRAME_LOST. */
enum message {
	BORROW = 'b',
	LENT = 'l',
	RETURNED = 'r',
	END = 'e',
	FULL = 'f',
};

struct question {
	char message;
	unsigned char owner[TOKENS_HASH_LEN];
};

struct session_holder {
	const struct session_holder_spec *spec;
	int cell_fd;
	int broker_fd;
	int listen_fd;
	int lent; /* the connection of who has the cell; -1: nobody */
	int waiting[WAITING_MAX];
	int waiting_count;
};

static void
socket_path(struct buf *path, const char *folder, const char *id)
{
	buf_addf(path, "%s/%s", folder, id);
}

/* ---- the holder's process ---- */

static void
end_session(const struct session_holder *k)
{
	auto_buf struct buf path = BUF_INIT(PATH_MAX_BYTES);

	socket_path(&path, k->spec->folder, k->spec->id);
	(void)unlink(buf_str(&path));
	metrics_change(k->spec->metrics, METRICS_SESSIONS, -1);
	_exit(0);
}

static void
tell(int fd, char message)
{
	struct err err;

	if (fd_send_packet(fd, &message, 1, -1, -1, 0, &err) != 0)
		log_debug("session: %s", err.text);
}

/* The cell is gone, or the lease: who has the cell is told why, as the broker
 * tells us. */
static void
end_lost(const struct session_holder *k)
{
	struct frame frame;
	struct err err;

	if (k->lent >= 0 && lease_is_out_of_memory(k->broker_fd)) {
		frame_start(&frame, FRAME_LOST);
		frame_add_int(&frame, TAG_REASON, REASON_MEMORY);
		if (fd_send_packet(k->lent, frame.data, frame.len, -1, -1, 0,
			&err) != 0)
			log_debug("session: %s", err.text);
	}
	end_session(k);
}

static void
lend_to_next(struct session_holder *k)
{
	static const char message = LENT;
	struct err err;

	while (k->lent < 0 && k->waiting_count > 0) {
		int next = k->waiting[0];

		k->waiting_count--;
		for (int i = 0; i < k->waiting_count; i++)
			k->waiting[i] = k->waiting[i + 1];
		if (fd_send_packet(next, &message, 1, k->cell_fd, -1, ASK_MS,
			&err) == 0)
			k->lent = next;
		else
			(void)close(next); /* it has given up */
	}
}

/* Only programs of ours reach the socket; what makes no sense is dropped, and
 * so is whoever the session does not belong to. */
static void
take_connection(struct session_holder *k)
{
	int fd = accept4(k->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct question question;
	struct err err;

	if (fd < 0)
		return;
	if (fd_receive_packet(fd, &question, sizeof(question), NULL, NULL,
		ASK_MS, &err) != (ssize_t)sizeof(question) ||
	    sodium_memcmp(question.owner, k->spec->owner,
		sizeof(question.owner)) != 0) {
		(void)close(fd);
		return;
	}
	if (question.message == END) {
		tell(fd, END);
		end_session(k);
	}
	if (question.message == BORROW && k->waiting_count < WAITING_MAX) {
		k->waiting[k->waiting_count++] = fd;
		return;
	}
	tell(fd, FULL);
	(void)close(fd);
}

/* Who had the cell is done with it, or has broken off in the middle. */
static void
take_back(struct session_holder *k)
{
	char message = 0;
	struct err err;

	if (fd_receive_packet(k->lent, &message, 1, NULL, NULL, 0, &err) != 1 ||
	    message != RETURNED)
		end_session(k);
	(void)close(k->lent);
	k->lent = -1;
}

/* Who waits has nothing to say but that it does not any more. */
static void
drop_gone(struct session_holder *k, const struct pollfd *waiting)
{
	int count = k->waiting_count;

	k->waiting_count = 0;
	for (int i = 0; i < count; i++) {
		if (waiting[i].revents != 0)
			(void)close(waiting[i].fd);
		else
			k->waiting[k->waiting_count++] = waiting[i].fd;
	}
}

static void
keep(struct session_holder *k)
{
	for (;;) {
		struct pollfd p[4 + WAITING_MAX] = {
			{ .fd = k->listen_fd, .events = POLLIN },
			{ .fd = k->lent, .events = POLLIN },
			{ .fd = k->cell_fd }, /* its end alone */
			{ .fd = k->broker_fd, .events = POLLIN },
		};

		lend_to_next(k);
		p[1].fd = k->lent;
		for (int i = 0; i < k->waiting_count; i++)
			p[4 + i] = (struct pollfd){ .fd = k->waiting[i],
				.events = POLLIN };
		if (poll(p, 4 + (nfds_t)k->waiting_count,
			clock_poll_timeout(k->spec->until_ms)) < 0) {
			if (errno == EINTR)
				continue;
			end_session(k);
		}
		if (clock_monotonic_ms() >= k->spec->until_ms)
			end_session(k);
		if (p[2].revents != 0 || p[3].revents != 0)
			end_lost(k);
		drop_gone(k, p + 4);
		if (p[1].revents != 0)
			take_back(k);
		if (p[0].revents != 0)
			take_connection(k);
	}
}

static int
compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* All but standard error and what the holder needs: above all the client's
 * connection. */
static void
close_others(const struct session_holder *k, int start_fd)
{
	int kept[] = { k->cell_fd, k->broker_fd, k->listen_fd, k->spec->slot,
		start_fd };
	const int count = sizeof(kept) / sizeof(kept[0]);
	unsigned int from = 3;

	qsort(kept, (size_t)count, sizeof(kept[0]), compare_fds);
	for (int i = 0; i < count; i++) {
		if (kept[i] < 0)
			continue;
		if ((unsigned int)kept[i] > from)
			(void)syscall(SYS_close_range, from,
			    (unsigned int)kept[i] - 1, 0);
		from = (unsigned int)kept[i] + 1;
	}
	(void)syscall(SYS_close_range, from, ~0U, 0);
}

/* start_fd: at its end the process between us and the master is gone. */
static void
become_holder(struct session_holder *k, int start_fd)
{
	char byte;

	close_others(k, start_fd);
	while (read(start_fd, &byte, 1) < 0 && errno == EINTR)
		;
	(void)close(start_fd);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
	    getppid() != k->spec->master)
		_exit(1);
	metrics_change(k->spec->metrics, METRICS_SESSIONS, 1);
	keep(k);
}

/* Its parent ends at once, so that the master inherits it. */
static int
start_process(struct session_holder *k, struct err *err)
{
	int status = -1;
	int start[2];
	pid_t pid;

	if (pipe2(start, O_CLOEXEC) != 0)
		return err_system(err, "pipe");
	pid = fork();
	if (pid == 0) {
		(void)close(start[1]);
		pid = fork();
		if (pid == 0)
			become_holder(k, start[0]);
		_exit(pid < 0);
	}
	(void)close(start[0]);
	if (pid < 0)
		(void)err_system(err, "fork");
	else
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	(void)close(start[1]);
	if (pid >= 0 && status != 0)
		(void)err_set(err, ERR_SYSTEM, "fork: no second process");
	return status == 0 ? 0 : -1;
}

int
session_holder_start(const struct session_holder_spec *spec,
    struct lease *lease, struct err *err)
{
	auto_buf struct buf path = BUF_INIT(PATH_MAX_BYTES);
	struct session_holder k = { .spec = spec,
		.cell_fd = lease->cell_fd,
		.broker_fd = lease->broker_fd,
		.lent = -1 };
	int result;

	if (fd_make_dirs(spec->folder, 0700, err) != 0)
		return -1;
	socket_path(&path, spec->folder, spec->id);
	k.listen_fd = fd_listen_unix(buf_str(&path), SOCK_SEQPACKET, 0600, err);
	if (k.listen_fd < 0)
		return -1;
	result = start_process(&k, err);
	(void)close(k.listen_fd);
	if (result != 0)
		(void)unlink(buf_str(&path));
	else
		lease_close(lease); /* our copies of it */
	return result;
}

void
session_holder_sweep(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL)
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	(void)closedir(dir);
}

/* ---- its clients ---- */

static int
ask(const char *folder, const char *id, const unsigned char *owner,
    char message, struct err *err)
{
	struct question question = { .message = message };
	auto_buf struct buf path = BUF_INIT(PATH_MAX_BYTES);
	auto_close int fd = -1;

	socket_path(&path, folder, id);
	memcpy(question.owner, owner, sizeof(question.owner));
	fd = fd_connect_unix(buf_str(&path), SOCK_SEQPACKET, err);
	if (fd < 0 ||
	    fd_send_packet(fd, &question, sizeof(question), -1, -1, ASK_MS,
		err) != 0)
		return err_set(err, ERR_NOT_FOUND, "no such session");
	return steal_fd(&fd);
}

int
session_holder_borrow(const char *folder, const char *id,
    const unsigned char *owner, const struct pollfd *unless, int *cell_fd,
    int wait_ms, struct err *err)
{
	auto_close int fd = ask(folder, id, owner, BORROW, err);
	int64_t deadline = clock_monotonic_ms() + wait_ms;
	char message = 0;
	ssize_t n;

	*cell_fd = -1;
	if (fd < 0)
		return -1;
	if (fd_wait_unless(fd, unless, wait_ms))
		n = fd_receive_packet(fd, &message, 1, cell_fd, NULL,
		    clock_poll_timeout(deadline), err);
	else
		n = err_set(err, ERR_TIMEOUT, "nobody waits for it");
	if (n == 1 && *cell_fd >= 0)
		return steal_fd(&fd);
	if (n == 1 && message == FULL)
		(void)err_set(err, ERR_TIMEOUT, "too many wait for it");
	else if (n >= 0)
		(void)err_set(err, ERR_NOT_FOUND, "the session has ended");
	else
		/* It may be lent to us by now, and nothing is begun. */
		tell(fd, RETURNED);
	return -1;
}

void
session_holder_return(int connection)
{
	static const char message = RETURNED;
	struct err err;

	if (fd_send_packet(connection, &message, 1, -1, -1, ASK_MS, &err) != 0)
		log_warn("session: %s", err.text);
	(void)close(connection);
}

int
session_holder_end(const char *folder, const char *id,
    const unsigned char *owner, struct err *err)
{
	auto_close int fd = ask(folder, id, owner, END, err);
	char message = 0;
	ssize_t n;

	if (fd < 0)
		return -1;
	n = fd_receive_packet(fd, &message, 1, NULL, NULL, END_MS, err);
	if (n != 1 || message != END)
		return n < 0 ? -1 :
			       err_set(err, ERR_NOT_FOUND, "it is not ours");
	/* At its end the session has ended, too. */
	(void)fd_receive_packet(fd, &message, 1, NULL, NULL, END_MS, err);
	return 0;
}
