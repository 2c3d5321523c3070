/* SPDX-License-Identifier: MIT */
#include "protocol/lease.h"

#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

/* An answer of the broker is small, but for METRICS. */
#define ANSWER_MAX 8192
#define PARK_MS 1000
#define LOST_MS 2000 /* for the broker to see what we have seen */

/* A broker that restarts is back within a second or two; so is a cell that
 * another client has died over. */
#define AGAIN_MS 5000
#define AGAIN_PAUSE_MS 100

/* One question to the broker and what came back. */
struct ask {
	const struct lease_request *request;
	int sock;     /* the connection */
	int attached; /* the descriptor that came with the answer, or -1 */
	unsigned char packet[ANSWER_MAX];
	struct frame_view view; /* of the answer */
};

#define ASK(of) \
	{ \
		.request = (of), .sock = -1, .attached = -1 \
	}
#define auto_ask __attribute__((cleanup(ask_release)))

static void
ask_release(struct ask *ask)
{
	cleanup_close(&ask->sock);
	cleanup_close(&ask->attached);
}

/* The wait is over, or the broker is gone: which of the two? */
static enum refusal
ask_failed(const struct err *err)
{
	return err->code == ERR_TIMEOUT ? REFUSAL_TIME : REFUSAL_UNREACHABLE;
}

static enum refusal
ask_refused(const struct ask *ask, struct err *err)
{
	char text[200] = "";
	int64_t code = 0;

	if (!frame_get_int(&ask->view, TAG_CODE, &code) ||
	    code < REFUSAL_INPUT || code > REFUSAL_SANDBOXES) {
		(void)err_set(err, ERR_PROTOCOL, "a refusal without a reason");
		return REFUSAL_UNREACHABLE;
	}
	(void)frame_get_text(&ask->view, TAG_TEXT, text, sizeof(text));
	(void)err_set(err, code == REFUSAL_INPUT ? ERR_INPUT : ERR_UNAVAILABLE,
	    "the broker refused: %s", text);
	return (enum refusal)code;
}

/* Wait for the answer, with the ticks of the request.  False: its `unless` has
 * happened, and nothing else. */
static bool
ask_wait(const struct ask *ask, int64_t deadline)
{
	const struct lease_request *request = ask->request;
	struct pollfd p[2] = { { .fd = ask->sock, .events = POLLIN },
		{ .fd = -1 } };
	int64_t tick_ms = INT64_MAX;

	if (request->unless != NULL)
		p[1] = *request->unless;
	do {
		if (clock_monotonic_ms() >= tick_ms)
			request->tick(request->tick_arg);
		if (request->tick != NULL)
			tick_ms = clock_monotonic_ms() + request->tick_ms;
	} while (poll(p, 2,
		     clock_poll_timeout(tick_ms < deadline ? tick_ms :
							     deadline)) <= 0 &&
	    clock_monotonic_ms() < deadline);
	return p[0].revents != 0 || p[1].revents == 0;
}

static void
ask_build(struct frame *question, enum frame_kind kind,
    const struct lease_request *request)
{
	frame_start(question, kind);
#define TEXT(member, tag) \
	if (request->member != NULL && *request->member != '\0') \
		frame_add_text(question, TAG_##tag, request->member);
#define NUMBER(type, member, tag) \
	frame_add_nonzero(question, TAG_##tag, request->member);
#include "protocol/lease.def"
	if (request->owner != NULL)
		frame_add_bytes(question, TAG_TOKEN, request->owner,
		    LEASE_OWNER_LEN);
}

/* Send the question and read the answer, which must be of the wanted kind. */
static enum refusal
ask_broker(struct ask *ask, const char *path, enum frame_kind kind, int wait_ms,
    struct err *err)
{
	int64_t deadline = clock_monotonic_ms() + wait_ms;
	bool passes = kind == FRAME_LEASE && ask->request->slot_fd > 0;
	enum frame_kind wanted = kind == FRAME_STATUS ? FRAME_STATUS_IS :
							FRAME_GRANTED;
	struct frame question;
	ssize_t len;

	ask_build(&question, kind, ask->request);
	ask->sock = fd_connect_unix(path, SOCK_SEQPACKET, err);
	if (ask->sock < 0 ||
	    fd_send_packet(ask->sock, question.data, question.len,
		passes ? ask->request->slot_fd : -1,
		clock_poll_timeout(deadline), err) != 0)
		return ask_failed(err);
	if (!ask_wait(ask, deadline)) {
		(void)err_set(err, ERR_TIMEOUT, "nobody waits for it");
		return REFUSAL_TIME;
	}
	len = fd_receive_packet(ask->sock, ask->packet, sizeof(ask->packet),
	    &ask->attached, clock_poll_timeout(deadline), err);
	if (len < 0)
		return ask_failed(err);
	if (len == 0 || !frame_parse(&ask->view, ask->packet, (size_t)len) ||
	    (ask->view.kind != wanted && ask->view.kind != FRAME_REFUSED)) {
		(void)err_set(err, len == 0 ? ERR_UNAVAILABLE : ERR_PROTOCOL,
		    len == 0 ? "the broker hung up" :
			       "the broker speaks nonsense");
		return REFUSAL_UNREACHABLE;
	}
	return ask->view.kind == wanted ? REFUSAL_NONE : ask_refused(ask, err);
}

/* Ask for a lease, a new one or that of a session. */
static enum refusal
lease_ask(struct lease *lease, struct ask *ask, const char *socket_path,
    enum frame_kind kind, int wait_ms, struct err *err)
{
	enum refusal outcome = ask_broker(ask, socket_path, kind, wait_ms, err);
	int64_t cold = 0;
	int64_t access = ACCESS_WRITE;
	int64_t ended = 0;

	*lease = (struct lease)LEASE_NONE;
	if (outcome != REFUSAL_NONE) {
		(void)frame_get_int(&ask->view, TAG_REST_MS, &lease->next_ms);
		return outcome;
	}
	if (ask->attached < 0) {
		(void)err_set(err, ERR_PROTOCOL, "a lease without a cell");
		return REFUSAL_UNREACHABLE;
	}
	lease->broker_fd = steal_fd(&ask->sock);
	lease->cell_fd = steal_fd(&ask->attached);
	(void)frame_get_int(&ask->view, TAG_COLD, &cold);
	lease->cold = cold != 0;
	(void)frame_get_int(&ask->view, TAG_ACCESS, &access);
	lease->access = (enum access)access;
	(void)frame_get_int(&ask->view, TAG_ENDED, &ended);
	lease->ended = (enum kept_end)ended;
	(void)frame_get_text(&ask->view, TAG_CELL_NAME, lease->cell_name,
	    sizeof(lease->cell_name));
	return REFUSAL_NONE;
}

enum refusal
lease_open(struct lease *lease, const char *socket_path,
    const struct lease_request *request, int wait_ms, struct err *err)
{
	auto_ask struct ask ask = ASK(request);

	return lease_ask(lease, &ask, socket_path, FRAME_LEASE, wait_ms, err);
}

static void
send_park(int broker_fd)
{
	struct frame park;
	struct err err;

	frame_start(&park, FRAME_PARK);
	(void)fd_send_packet(broker_fd, park.data, park.len, -1, PARK_MS, &err);
}

enum refusal
lease_resume(struct lease *lease, const char *socket_path,
    const struct lease_request *request, int wait_ms, struct err *err)
{
	auto_ask struct ask ask = ASK(request);
	enum refusal outcome = lease_ask(lease, &ask, socket_path, FRAME_RESUME,
	    wait_ms, err);

	/* The lease may be granted by now, and is unused. */
	if (outcome != REFUSAL_NONE && ask.sock >= 0)
		send_park(ask.sock);
	return outcome;
}

void
lease_park(struct lease *lease)
{
	if (!lease->lost && lease->broker_fd >= 0)
		send_park(lease->broker_fd);
	lease_close(lease);
}

/* Until when somebody asks again. */
struct again {
	int64_t until_ms;
	int64_t end_ms;	  /* and never after that */
	int64_t began_ms; /* the question that was just answered */
	const struct pollfd *unless;
};

/* Is there to be another question after this answer?  Waits until it is time.
 * The broker has held a client whose sandbox is busy for as long as that may
 * pass by itself; one that is ending has let us wait, and then go. */
static bool
is_asked_again(struct again *again, enum refusal refusal)
{
	int64_t now_ms = clock_monotonic_ms();
	struct pollfd gone = { .fd = -1 };

	if (refusal != REFUSAL_UNREACHABLE && refusal != REFUSAL_BUSY)
		return false;
	if (refusal == REFUSAL_UNREACHABLE &&
	    now_ms > again->began_ms + AGAIN_PAUSE_MS)
		again->until_ms = now_ms + AGAIN_MS;
	again->began_ms = now_ms + AGAIN_PAUSE_MS;
	if (again->unless != NULL)
		gone = *again->unless;
	return again->began_ms <= again->until_ms &&
	    again->began_ms <= again->end_ms &&
	    poll(&gone, 1, AGAIN_PAUSE_MS) <= 0;
}

enum refusal
lease_open_again(struct lease *lease, const char *socket_path,
    const struct lease_request *request, int wait_ms, int64_t until_ms,
    struct err *err)
{
	int64_t now_ms = clock_monotonic_ms();
	struct again again = { now_ms + AGAIN_MS, until_ms, now_ms,
		request->unless };
	enum refusal refusal;

	do {
		int left_ms = clock_poll_timeout(until_ms);

		refusal = lease_open(lease, socket_path, request,
		    left_ms < wait_ms ? left_ms : wait_ms, err);
	} while (is_asked_again(&again, refusal));
	return refusal;
}

void
lease_close(struct lease *lease)
{
	/* The cell first: it cleans up while the broker hears of it. */
	cleanup_close(&lease->cell_fd);
	cleanup_close(&lease->broker_fd);
	*lease = (struct lease)LEASE_NONE;
}

bool
lease_is_out_of_memory(int broker_fd)
{
	unsigned char packet[ANSWER_MAX];
	struct frame_view view;
	struct err err;
	int64_t reason;
	ssize_t len = fd_receive_packet(broker_fd, packet, sizeof(packet), NULL,
	    LOST_MS, &err);

	return len > 0 && frame_parse(&view, packet, (size_t)len) &&
	    view.kind == FRAME_LOST &&
	    frame_get_int(&view, TAG_REASON, &reason) &&
	    reason == REASON_MEMORY;
}

enum refusal
lease_command(int *fd, const char *socket_path,
    const struct lease_request *command, int wait_ms, struct err *err)
{
	auto_ask struct ask ask = ASK(command);
	enum refusal outcome = ask_broker(&ask, socket_path, command->kind,
	    wait_ms, err);

	if (command->rest_left_ms != NULL)
		(void)frame_get_int(&ask.view, TAG_REST_MS,
		    command->rest_left_ms);
	if (fd != NULL)
		*fd = outcome == REFUSAL_NONE ? steal_fd(&ask.sock) : -1;
	return outcome;
}

enum refusal
lease_kept(const char *socket_path, const char *sandbox, bool stop,
    int64_t *rest_ms, int wait_ms, struct err *err)
{
	int64_t now_ms = clock_monotonic_ms();
	struct again again = { now_ms + AGAIN_MS, INT64_MAX, now_ms, NULL };
	enum refusal refusal;

	*rest_ms = -1;
	do
		refusal = lease_command(NULL, socket_path,
		    &(struct lease_request){ .kind = FRAME_KEPT,
			.sandbox = sandbox,
			.retire = stop,
			.rest_left_ms = rest_ms },
		    wait_ms, err);
	while (is_asked_again(&again, refusal));
	return refusal;
}

/* ---- the status ---- */

/* One of another version may have other places. */
#define TOLD_FILE "broker/status-" INLINE_VERSION
#define TOLD_MAX 8192
/* A broker that has told nothing for so long hangs. */
#define SILENCE_MS (3 * LEASE_STATUS_TELL_MS)
#define TRIES 3

struct lease_status_file {
	_Atomic int64_t turn;	 /* odd: it is being written */
	_Atomic int64_t writer;	 /* 0: none */
	_Atomic int64_t told_ms; /* monotonic */
	_Atomic int64_t len;
	unsigned char frame[TOLD_MAX];
};

/* FRAME_STATUS_IS; what is absent is zero.  The texts are others': of the
 * engine, of a cell, or cut somewhere. */
static void
lease_status_parse(struct lease_status *status, const struct frame_view *view)
{
	int64_t flag = 0;

	*status = (struct lease_status){ .engine_age_ms = -1 };
#define STATUS_NUMBER(member, tag) \
	(void)frame_get_int(view, TAG_##tag, &status->member);
#define STATUS_TEXT(member, size, tag) \
	(void)frame_get_text(view, TAG_##tag, status->member, size); \
	text_clean_array(status->member, size);
#include "protocol/lease.def"
	status->engine = frame_get_int(view, TAG_ENGINE, &flag) && flag == 1;
	status->image = frame_get_int(view, TAG_IMAGE, &flag) && flag == 1;
	if (images_check(status->images) != NULL)
		status->images[0] = '\0';
	if (images_check(status->chat_images) != NULL)
		status->chat_images[0] = '\0';
}

int64_t
lease_status_room(const struct lease_status *status)
{
	return status->free_bytes - status->floor - status->promised;
}

enum refusal
lease_status(const char *socket_path, struct lease_status *status, int wait_ms,
    struct err *err)
{
	auto_ask struct ask ask = ASK(&(struct lease_request){ 0 });
	enum refusal outcome = ask_broker(&ask, socket_path, FRAME_STATUS,
	    wait_ms, err);

	*status = (struct lease_status){ 0 };
	if (outcome == REFUSAL_NONE)
		lease_status_parse(status, &ask.view);
	return outcome;
}

/* ---- the file of the status ---- */

struct lease_status_file *
lease_status_open(const struct config *config, struct err *err)
{
	auto_free char *path = config_state_path(config, TOLD_FILE);
	struct lease_status_file *file = shared_file_open(path, sizeof(*file),
	    err);

	if (file != NULL) {
		/* A broker that was killed may have left it half written. */
		file->turn = 0;
		file->len = 0;
		file->writer = shared_file_writer();
	}
	return file;
}

void
lease_status_close(struct lease_status_file *file, const struct config *config)
{
	auto_free char *path = config_state_path(config, TOLD_FILE);

	if (file == NULL)
		return;
	file->writer = 0; /* il-fcgi may have mapped it */
	(void)unlink(path);
	shared_file_close(file, sizeof(*file));
}

void
lease_status_tell(struct lease_status_file *file, const struct frame *frame)
{
	if (file == NULL || frame->len > sizeof(file->frame))
		return;
	file->turn++;
	atomic_thread_fence(memory_order_seq_cst);
	memcpy(file->frame, frame->data, frame->len);
	atomic_thread_fence(memory_order_seq_cst);
	file->len = (int64_t)frame->len;
	file->told_ms = clock_monotonic_ms();
	file->turn++;
}

/* Its length; 0: it was being written each time that we looked. */
static size_t
copy_frame(const struct lease_status_file *file, unsigned char *copy)
{
	for (int i = 0; i < TRIES; i++) {
		int64_t turn = file->turn;
		int64_t len = file->len;

		if (turn % 2 != 0 || len < 0 || len > TOLD_MAX)
			continue;
		atomic_thread_fence(memory_order_seq_cst);
		memcpy(copy, file->frame, (size_t)len);
		atomic_thread_fence(memory_order_seq_cst);
		if (file->turn == turn)
			return (size_t)len;
	}
	return 0;
}

int
lease_status_read(const struct config *config, struct lease_status *status,
    struct err *err)
{
	auto_free char *path = config_state_path(config, TOLD_FILE);
	const struct lease_status_file *file = shared_file_read(path,
	    sizeof(*file), err);
	unsigned char copy[TOLD_MAX];
	struct frame_view view;
	int64_t age_ms;
	bool runs;
	size_t len;

	*status = (struct lease_status){ .engine_age_ms = -1 };
	if (file == NULL)
		return -1;
	runs = shared_file_writer_is_there(file->writer);
	age_ms = clock_monotonic_ms() - file->told_ms;
	len = copy_frame(file, copy);
	shared_file_close(file, sizeof(*file));
	if (!runs)
		return err_set(err, ERR_UNAVAILABLE, "il-sandboxd has ended");
	if (age_ms < 0 || age_ms > SILENCE_MS)
		return err_set(err, ERR_TIMEOUT, "il-sandboxd is silent");
	if (!frame_parse(&view, copy, len) || view.kind != FRAME_STATUS_IS)
		return err_set(err, ERR_PROTOCOL, "%s: is no status", path);
	lease_status_parse(status, &view);
	if (status->engine_age_ms >= 0)
		status->engine_age_ms += age_ms;
	if (status->start_pending_ms > 0)
		status->start_pending_ms += age_ms;
	return 0;
}
