/* SPDX-License-Identifier: MIT */
#include "api/app.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sodium.h>

#include "api/gate.h"
#include "server/http.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"

#define ASK_MS 1000
#define END_MS 5000
#define START_MS 30000 /* a session's cell is always a new one */
/* The lease outlives the session: its holder ends that. */
#define MORE_MS 60000
#define LEASE_MS_MAX (INT64_C(24) * 3600 * 1000)
/* A session that is being made is worth waiting for.  A busy one may stay busy
 * for any time. */
#define NAMED_TURN_MS 2000
#define NAMED_MS (INT64_C(12) * 3600 * 1000) /* in any case */
#define ROOM_TIMES 3 /* other requests may get the evicted one's cell */

/* Messages to and from a holder, of one byte each, with three exceptions: the
 * first one is a struct question, the answer to STATE is a struct
 * session_state, and the last one to the borrower may be a FRAME_LOST. */
enum message {
	BORROW = 'b',
	LENT = 'l',
	RETURNED = 'r',
	END = 'e',
	FULL = 'f',
	STATE = 'o',
	YIELD = 'y', /* as END, if the session may be evicted */
};

struct question {
	char message;
	unsigned char owner[TOKENS_HASH_LEN];
};

struct session_state {
	bool rests; /* the session is at rest, and the caller's */
	int64_t ms; /* time at rest; else time until it may rest or ends */
};

struct session_holder {
	struct api_app *app;
	const char *path; /* of its socket */
	int64_t until_ms;
	int64_t rest_ms;  /* longest time at rest */
	int64_t since_ms; /* time of its last use */
	int cell_fd;
	int broker_fd;
	int listen_fd;
	int lent; /* connection of the cell's borrower; -1: none */
	/* Connection of the next borrower; -1: none.  Each waiting request
	 * holds one of il-api's IL_API_SESSIONS processes.  With more than one
	 * the commands of one session could make all others wait. */
	int waiting;
};

/* Claim of a session whose id the caller has chosen; the first process that
 * claims it makes it. */
struct session_claim {
	char id[SESSION_ID_SIZE];
	int64_t rest_ms; /* an unused session ends after so long */
	int listen_fd;
};

/* passed: a descriptor to pass, or -1. */
static int
session_holder_send(int fd, char message, int passed, struct err *err)
{
	return fd_send_packet(fd, &message, 1, passed, ASK_MS, err);
}

/* ---- the holder's process ---- */

/* The lease ends with the process. */
static void
end_session(const struct session_holder *k)
{
	(void)unlink(k->path);
	metrics_change(&k->app->metrics, METRICS_SESSIONS, -1);
	_exit(0);
}

/* The cell or the lease is gone: tell the borrower the broker's reason. */
static void
session_holder_end_lost(const struct session_holder *k)
{
	struct frame frame;
	struct err err;

	if (k->lent >= 0 && lease_is_out_of_memory(k->broker_fd)) {
		frame_start(&frame, FRAME_LOST);
		frame_add_int(&frame, TAG_REASON, REASON_MEMORY);
		if (fd_send_packet(k->lent, frame.data, frame.len, -1, 0,
			&err) != 0)
			log_debug("session: %s", err.text);
	}
	end_session(k);
}

/* Time of the session's end without further requests (monotonic). */
static int64_t
end_ms(const struct session_holder *k)
{
	bool rests = k->lent < 0 && k->waiting < 0;

	return rests && k->rest_ms < k->until_ms - k->since_ms ?
	    k->since_ms + k->rest_ms :
	    k->until_ms;
}

/* The session's state.  Other owners learn only when there may be room. */
static struct session_state
session_holder_state(const struct session_holder *k, bool own)
{
	int64_t now = clock_monotonic_ms();
	int64_t left = end_ms(k) > now ? end_ms(k) - now : 0;

	if (own && k->lent < 0 && k->waiting < 0)
		return (struct session_state){ true, now - k->since_ms };
	return (struct session_state){ false,
		own && left > SESSION_REST_MS ? SESSION_REST_MS : left };
}

/* Accept a connection.  Only il-api's processes reach the socket.  A malformed
 * question is dropped, and so is one of another owner. */
static void
session_holder_accept(struct session_holder *k)
{
	auto_close int fd = accept4(k->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	struct question question;
	struct session_state seen;
	struct err err;
	bool own;

	if (fd < 0 ||
	    fd_receive_packet(fd, &question, sizeof(question), NULL, ASK_MS,
		&err) != (ssize_t)sizeof(question))
		return;
	own = sodium_memcmp(question.owner, k->app->owner,
		  sizeof(question.owner)) == 0;
	seen = session_holder_state(k, own);
	if (question.message == STATE)
		(void)fd_send_packet(fd, &seen, sizeof(seen), -1, ASK_MS, &err);
	if (!own || question.message == STATE)
		return;
	if (question.message == END ||
	    (question.message == YIELD && seen.rests &&
		seen.ms >= SESSION_REST_MS)) {
		(void)session_holder_send(fd, END, -1, &err);
		end_session(k);
	}
	if (question.message == BORROW && k->waiting < 0)
		k->waiting = steal_fd(&fd);
	else
		(void)session_holder_send(fd, FULL, -1, &err);
}

/* The borrower has returned the cell, or has broken off a request. */
static void
session_holder_end_loan(struct session_holder *k)
{
	char message = 0;
	struct err err;

	if (fd_receive_packet(k->lent, &message, 1, NULL, 0, &err) != 1 ||
	    message != RETURNED)
		end_session(k);
	cleanup_close(&k->lent);
	k->since_ms = clock_monotonic_ms();
}

/* The holder's loop: lend the cell, and end the session. */
static void
serve_requests(struct session_holder *k)
{
	struct err err;

	for (;;) {
		/* The cell is free: lend it to the next borrower, unless that
		 * one has given up. */
		if (k->lent < 0 && k->waiting >= 0) {
			k->lent = steal_fd(&k->waiting);
			if (session_holder_send(k->lent, LENT, k->cell_fd,
				&err) != 0)
				cleanup_close(&k->lent);
		}
		struct pollfd p[] = {
			{ .fd = k->listen_fd, .events = POLLIN },
			{ .fd = k->lent, .events = POLLIN },
			{ .fd = k->waiting, .events = POLLIN },
			{ .fd = k->cell_fd }, /* its end alone */
			{ .fd = k->broker_fd, .events = POLLIN },
		};

		if (TEMP_FAILURE_RETRY(poll(p, sizeof(p) / sizeof(p[0]),
			clock_poll_timeout(end_ms(k)))) < 0 ||
		    clock_monotonic_ms() >= end_ms(k))
			end_session(k);
		if (p[3].revents != 0 || p[4].revents != 0)
			session_holder_end_lost(k);
		/* A waiting borrower sends nothing: it has given up. */
		if (p[2].revents != 0)
			cleanup_close(&k->waiting);
		if (p[1].revents != 0)
			session_holder_end_loan(k);
		if (p[0].revents != 0)
			session_holder_accept(k);
	}
}

/* Close all descriptors but standard error and the holder's own, above all the
 * client's connection. */
static void
session_holder_close_others(const struct session_holder *k)
{
	const int kept[] = { k->cell_fd, k->broker_fd, k->listen_fd,
		k->app->slot };
	int from = STDERR_FILENO + 1;

	while (from > 0) {
		int next = INT_MAX;

		for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
			if (kept[i] >= from && kept[i] < next)
				next = kept[i];
		(void)syscall(SYS_close_range, (unsigned)from,
		    (unsigned)next - 1, 0);
		from = next == INT_MAX ? 0 : next + 1;
	}
}

/* id: a valid one. */
static char *
session_holder_path(const struct api_app *app, const char *id)
{
	return xprintf("%s/%s", app->sessions, id + strlen(SESSION_PREFIX));
}

/* From here on a process that borrows the session waits.  ERR_BUSY: another
 * process has claimed it.  One of the next two functions ends the claim. */
static int
session_holder_claim(struct api_app *app, struct session_claim *claim,
    struct err *err)
{
	auto_free char *path = session_holder_path(app, claim->id);
	auto_close int dir = -1;

	if (fd_make_dirs(app->sessions, 0700, err) != 0)
		return -1;
	/* If two processes find a dead socket in the way, the slower one must
	 * not remove the faster one's. */
	dir = open(app->sessions, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || flock(dir, LOCK_EX) != 0)
		return err_system(err, "lock %s", app->sessions);
	claim->listen_fd = fd_listen_unix(path, SOCK_SEQPACKET, 0600, err);
	return claim->listen_fd < 0 ? -1 : 0;
}

static void
session_holder_disclaim(struct api_app *app, struct session_claim *claim)
{
	auto_free char *path = session_holder_path(app, claim->id);

	(void)unlink(path);
	(void)close(claim->listen_fd);
}

static int
session_holder_start_claimed(struct api_app *app, struct lease *lease,
    int64_t ttl_ms, struct session_claim *claim, struct err *err)
{
	auto_free char *path = session_holder_path(app, claim->id);
	struct session_holder k = { .app = app,
		.path = path,
		.until_ms = clock_monotonic_ms() + ttl_ms,
		.rest_ms = claim->rest_ms,
		.since_ms = clock_monotonic_ms(),
		.cell_fd = lease->cell_fd,
		.broker_fd = lease->broker_fd,
		.listen_fd = claim->listen_fd,
		.lent = -1,
		.waiting = -1 };
	/* A fork(), but the new process is the master's child, as we are. */
	long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL,
	    NULL);

	if (pid == 0) {
		session_holder_close_others(&k);
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 ||
		    getppid() != app->master)
			_exit(1);
		/* The kernel names the process that listened last. */
		(void)listen(k.listen_fd, SOMAXCONN);
		metrics_change(&app->metrics, METRICS_SESSIONS, 1);
		serve_requests(&k);
	}
	if (pid < 0)
		(void)err_system(err, "clone");
	lease_close(lease);
	if (pid > 0) {
		(void)close(claim->listen_fd);
		return 0;
	}
	session_holder_disclaim(app, claim);
	return -1;
}

int
session_holder_start(struct api_app *app, struct lease *lease, int64_t ttl_ms,
    char id[SESSION_ID_SIZE], struct err *err)
{
	struct session_claim claim = { .rest_ms = INT64_MAX };

	/* The socket exists before a client learns the id. */
	memcpy(claim.id, SESSION_PREFIX, sizeof(SESSION_PREFIX));
	text_random_hex(claim.id + strlen(SESSION_PREFIX), SESSION_DIGITS);
	node_table_mark(app->nodes, claim.id + strlen(SESSION_PREFIX));
	memcpy(id, claim.id, sizeof(claim.id));
	if (session_holder_claim(app, &claim, err) == 0)
		return session_holder_start_claimed(app, lease, ttl_ms, &claim,
		    err);
	lease_close(lease);
	return -1;
}

void
session_holder_sweep(const char *folder)
{
	auto_dir DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL)
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
}

/* ---- its clients ---- */

/* Connect to a holder and send the question.  -1 with ERR_NOT_FOUND: there is
 * no such session. */
static int
session_holder_ask(const struct api_app *app, const char *id, char message,
    struct err *err)
{
	const size_t prefix = strlen(SESSION_PREFIX);
	struct question question = { .message = message };
	auto_free char *path = NULL;
	auto_close int fd = -1;

	if (strncmp(id, SESSION_PREFIX, prefix) == 0 &&
	    strlen(id) == prefix + SESSION_DIGITS &&
	    strspn(id + prefix, "0123456789abcdef") == SESSION_DIGITS) {
		path = session_holder_path(app, id);
		fd = fd_connect_unix(path, SOCK_SEQPACKET, err);
	}
	memcpy(question.owner, app->owner, sizeof(question.owner));
	if (fd < 0 ||
	    fd_send_packet(fd, &question, sizeof(question), -1, ASK_MS, err) !=
		0)
		return err_set(err, ERR_NOT_FOUND, "no such session");
	return steal_fd(&fd);
}

int
session_holder_borrow(const struct api_app *app, const char *id, int client,
    int wait_ms, struct session_borrowed *b, struct err *err)
{
	const struct pollfd gone = { .fd = client, .events = POLLRDHUP };
	auto_close int fd = session_holder_ask(app, id, BORROW, err);
	int64_t deadline = clock_monotonic_ms() + wait_ms;
	struct err unheard;
	char message = 0;
	ssize_t n;

	*b = (struct session_borrowed){ .cell_fd = -1, .connection = -1 };
	if (fd < 0)
		return -1;
	if (fd_wait_unless(fd, &gone, wait_ms))
		n = fd_receive_packet(fd, &message, 1, &b->cell_fd,
		    clock_poll_timeout(deadline), err);
	else
		n = err_set(err, ERR_TIMEOUT, "nobody waits for it");
	if (n == 1 && b->cell_fd >= 0) {
		b->connection = steal_fd(&fd);
		return 0;
	}
	if (n == 1 && message == FULL)
		return err_set(err, ERR_TIMEOUT, "too many wait for it");
	if (n >= 0)
		return err_set(err, ERR_NOT_FOUND, "the session has ended");
	/* The cell may be lent to us by now, and is unused. */
	(void)session_holder_send(fd, RETURNED, -1, &unheard);
	return -1;
}

void
session_holder_return(struct session_borrowed *b)
{
	struct err err;

	/* A connection that is closed without a message ends the session. */
	if (!b->lost &&
	    session_holder_send(b->connection, RETURNED, -1, &err) != 0)
		log_warn("session: %s", err.text);
	cleanup_close(&b->connection);
	cleanup_close(&b->cell_fd);
}

/* End a session by END or YIELD; returns when it has ended. */
static bool
session_holder_end_by(const struct api_app *app, const char *id, char how)
{
	struct err err;
	auto_close int fd = session_holder_ask(app, id, how, &err);
	char message = 0;

	/* Another owner's holder hangs up without a message. */
	if (fd < 0 ||
	    fd_receive_packet(fd, &message, 1, NULL, END_MS, &err) != 1 ||
	    message != END)
		return false;
	/* The connection ends with the session. */
	(void)fd_receive_packet(fd, &message, 1, NULL, END_MS, &err);
	return true;
}

bool
session_holder_end(const struct api_app *app, const char *id)
{
	return session_holder_end_by(app, id, END);
}

/* False: the session has ended. */
static bool
session_holder_ask_state(const struct api_app *app, const char *id,
    struct session_state *seen)
{
	struct err err;
	auto_close int fd = session_holder_ask(app, id, STATE, &err);

	return fd >= 0 &&
	    fd_receive_packet(fd, seen, sizeof(*seen), NULL, ASK_MS, &err) ==
	    (ssize_t)sizeof(*seen);
}

/* Find the owner's session that has been at rest for the longest time.  Returns
 * that time; -1: there is none.  *next_ms: the time until one of all sessions
 * may be evicted. */
static int64_t
find_resting(const struct api_app *app, char id[SESSION_ID_SIZE],
    int64_t *next_ms)
{
	auto_dir DIR *dir = opendir(app->sessions);
	const struct dirent *entry;
	int64_t longest = -1;

	*next_ms = SESSION_REST_MS;
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		char name[SESSION_ID_SIZE];
		struct session_state seen;

		if (strlen(entry->d_name) != SESSION_DIGITS)
			continue;
		(void)snprintf(name, sizeof(name), SESSION_PREFIX "%.*s",
		    SESSION_DIGITS, entry->d_name);
		if (!session_holder_ask_state(app, name, &seen))
			continue;
		if (seen.rests && seen.ms > longest) {
			longest = seen.ms;
			memcpy(id, name, sizeof(name));
		}
		if (!seen.rests && seen.ms < *next_ms)
			*next_ms = seen.ms;
	}
	if (longest >= 0 && SESSION_REST_MS - longest < *next_ms)
		*next_ms = SESSION_REST_MS - longest;
	return longest;
}

bool
session_holder_make_room(const struct api_app *app, bool end, int64_t *next_ms)
{
	char id[SESSION_ID_SIZE];

	if (find_resting(app, id, next_ms) < SESSION_REST_MS)
		return false;
	if (!end)
		return true;
	if (!session_holder_end_by(app, id, YIELD))
		return false;
	log_info("a session is evicted for a new one of the same owner");
	return true;
}

/* ---- a cell for a session ---- */

enum refusal
session_cell_lease(struct api_app *app, struct http_request *req,
    const char *interpreter, int64_t ttl_ms, struct lease *lease,
    int64_t *next_ms, struct err *err)
{
	const struct pollfd gone = { .fd = http_fd(req), .events = POLLRDHUP };
	int64_t lease_ms = ttl_ms + MORE_MS;
	const struct lease_request request = { .class = "session",
		.sandbox = "",
		.interpreter = interpreter,
		.lease_ms = lease_ms < LEASE_MS_MAX ? lease_ms : LEASE_MS_MAX,
		.unless = &gone };
	enum refusal refusal;
	int tries = 0;

	*next_ms = 0;
	do
		refusal = lease_open(lease, app->lease_socket, &request,
		    START_MS, err);
	while (refusal == REFUSAL_FULL && tries++ < ROOM_TIMES &&
	    session_holder_make_room(app, true, next_ms));
	return refusal;
}

/* ---- the cell of a conversation ---- */

/* The id of the conversation's session, which no other owner's conversation
 * has. */
static void
session_holder_name(char id[SESSION_ID_SIZE], const struct api_app *app,
    const char *hint)
{
	unsigned char hash[SESSION_DIGITS / 2];
	char digits[SESSION_DIGITS + 1];

	(void)crypto_generichash(hash, sizeof(hash),
	    (const unsigned char *)hint, strlen(hint), app->owner,
	    sizeof(app->owner));
	(void)sodium_bin2hex(digits, sizeof(digits), hash, sizeof(hash));
	(void)snprintf(id, SESSION_ID_SIZE, SESSION_PREFIX "%s", digits);
}

/* Claim one of the token's slots for the session; its runs are counted like any
 * other.  An older session may be evicted.  -1: there is no slot. */
static int
session_holder_claim_slot(struct api_app *app)
{
	const int64_t most = app->config->api_sessions;
	int64_t next_ms;
	int slot = LIMITS_NONE;

	if (app->limited)
		slot = limits_claim_slot(app->limits, &app->token,
		    LIMITS_CONVERSATION, most);
	if (slot == -1 && session_holder_make_room(app, true, &next_ms))
		slot = limits_claim_slot(app->limits, &app->token,
		    LIMITS_CONVERSATION, most);
	return slot;
}

/* The cell, then its holder, which has the slot. */
static int
session_holder_start_named(struct api_app *app, struct http_request *req,
    struct session_claim *claim, int slot, struct err *err)
{
	const int run_slot = app->slot;
	struct lease lease;
	int64_t next_ms;
	int result;

	if (session_cell_lease(app, req, NULL, NAMED_MS, &lease, &next_ms,
		err) != REFUSAL_NONE) {
		session_holder_disclaim(app, claim);
		return -1;
	}
	app->slot = slot;
	result = session_holder_start_claimed(app, &lease, NAMED_MS, claim,
	    err);
	app->slot = run_slot;
	return result;
}

/* Make the session.  If that fails, the run has a cell of its own. */
static void
session_holder_create_named(struct session_named *s, struct api_app *app,
    struct http_request *req)
{
	struct session_claim claim = {
		.rest_ms = app->config->librechat_rest_ms
	};
	int slot = session_holder_claim_slot(app);
	struct err err;
	int result;

	if (slot == -1)
		return;
	memcpy(claim.id, s->id, sizeof(claim.id));
	/* Two requests may make the session at one time. */
	result = session_holder_claim(app, &claim, &err);
	if (result == 0)
		result = session_holder_start_named(app, req, &claim, slot,
		    &err);
	if (slot >= 0)
		(void)close(slot);
	if (result == 0)
		result = session_holder_borrow(app, s->id, http_fd(req),
		    NAMED_TURN_MS, &s->cell, &err);
	if (result != 0)
		log_info("a conversation has no cell: %s", err.text);
	s->fresh = result == 0;
}

/* Borrow the session's cell, if it can be had.  hint NULL: the conversation is
 * not known. */
void
session_holder_borrow_named(struct session_named *s, struct api_app *app,
    struct http_request *req, const char *hint)
{
	struct err err;

	*s = (struct session_named){ .cell.connection = -1 };
	if (hint == NULL || app->config->librechat_rest_ms == 0)
		return;
	session_holder_name(s->id, app, hint);
	if (session_holder_borrow(app, s->id, http_fd(req), NAMED_TURN_MS,
		&s->cell, &err) != 0 &&
	    err.code == ERR_NOT_FOUND)
		session_holder_create_named(s, app, req);
}
