/* SPDX-License-Identifier: MIT */
#include "lease.h"

#include <poll.h>
#include <sys/socket.h>

#include "../base/cleanup.h"
#include "../base/clock.h"
#include "../base/config_images.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "frame.h"

/* An answer of the broker is small: no field of it is longer than a text. */
#define ANSWER_MAX 8192
#define LOST_MS 2000 /* for the broker to see what we have seen */

/* A broker that restarts is back within a second or two; so is a cell that
 * another client has died over. */
#define AGAIN_MS 5000
#define AGAIN_PAUSE_MS 100

/* One question to the broker and what came back. */
struct ask {
	int sock;     /* the connection */
	int attached; /* the descriptor that came with the answer, or -1 */
	const struct pollfd *unless; /* of the request */
	unsigned char packet[ANSWER_MAX];
	struct frame_view view; /* of packet */
};

#define ASK_NONE \
	{ \
		.sock = -1, .attached = -1 \
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

/* Send the question and take the answer, which must be of the wanted kind. */
static enum refusal
ask_broker(struct ask *ask, const char *path, const struct frame *question,
    enum frame_kind wanted, int wait_ms, struct err *err)
{
	int64_t deadline = clock_monotonic_ms() + wait_ms;
	ssize_t len;

	ask->sock = fd_connect_unix(path, SOCK_SEQPACKET, err);
	if (ask->sock < 0 ||
	    fd_send_packet(ask->sock, question->data, question->len, -1,
		clock_poll_timeout(deadline), err) != 0)
		return ask_failed(err);
	if (!fd_wait_unless(ask->sock, ask->unless,
		clock_poll_timeout(deadline))) {
		(void)err_set(err, ERR_TIMEOUT, "nobody waits for it");
		return REFUSAL_TIME;
	}
	len = fd_receive_packet(ask->sock, ask->packet, sizeof(ask->packet),
	    &ask->attached, clock_poll_timeout(deadline), err);
	if (len < 0)
		return ask_failed(err);
	if (len == 0) {
		(void)err_set(err, ERR_UNAVAILABLE, "the broker hung up");
		return REFUSAL_UNREACHABLE;
	}
	if (!frame_parse(&ask->view, ask->packet, (size_t)len) ||
	    (ask->view.kind != wanted && ask->view.kind != FRAME_REFUSED)) {
		(void)err_set(err, ERR_PROTOCOL, "the broker speaks nonsense");
		return REFUSAL_UNREACHABLE;
	}
	return ask->view.kind == wanted ? REFUSAL_NONE : ask_refused(ask, err);
}

enum refusal
lease_open(struct lease *lease, const char *socket_path,
    const struct lease_request *request, int wait_ms, struct err *err)
{
	auto_ask struct ask ask = ASK_NONE;
	enum refusal outcome;
	struct frame question;
	int64_t cold = 0;
	int64_t access = ACCESS_WRITE;
	int64_t ended = 0;

	*lease = (struct lease)LEASE_NONE;
	ask.unless = request->unless;
	frame_start(&question, FRAME_LEASE);
	frame_add_text(&question, TAG_CLASS, request->class);
	if (*request->sandbox != '\0')
		frame_add_text(&question, TAG_SANDBOX, request->sandbox);
	if (request->interpreter != NULL)
		frame_add_text(&question, TAG_INTERPRETER,
		    request->interpreter);
	frame_add_int(&question, TAG_LEASE_MS, request->lease_ms);
	if (request->access != 0)
		frame_add_int(&question, TAG_ACCESS, request->access);
	if (request->keep)
		frame_add_int(&question, TAG_KEEP, 1);
	outcome = ask_broker(&ask, socket_path, &question, FRAME_GRANTED,
	    wait_ms, err);
	if (outcome != REFUSAL_NONE)
		return outcome;
	if (ask.attached < 0) {
		(void)err_set(err, ERR_PROTOCOL, "a lease without a cell");
		return REFUSAL_UNREACHABLE;
	}
	lease->broker_fd = steal_fd(&ask.sock);
	lease->cell_fd = steal_fd(&ask.attached);
	(void)frame_get_int(&ask.view, TAG_COLD, &cold);
	lease->cold = cold != 0;
	(void)frame_get_int(&ask.view, TAG_ACCESS, &access);
	lease->access = (enum access)access;
	(void)frame_get_int(&ask.view, TAG_ENDED, &ended);
	lease->ended = (enum kept_end)ended;
	(void)frame_get_text(&ask.view, TAG_CELL_NAME, lease->cell_name,
	    sizeof(lease->cell_name));
	return REFUSAL_NONE;
}

enum refusal
lease_open_again(struct lease *lease, const char *socket_path,
    const struct lease_request *request, int wait_ms, int64_t until_ms,
    struct err *err)
{
	int64_t again_until_ms = clock_monotonic_ms() + AGAIN_MS;

	for (;;) {
		int64_t began_ms = clock_monotonic_ms();
		int left_ms = clock_poll_timeout(until_ms);
		enum refusal refusal = lease_open(lease, socket_path, request,
		    left_ms < wait_ms ? left_ms : wait_ms, err);
		int64_t now_ms = clock_monotonic_ms();
		struct pollfd gone = { .fd = -1 };

		if (refusal != REFUSAL_UNREACHABLE && refusal != REFUSAL_BUSY)
			return refusal;
		/* A broker that is ending has let us wait, and then go. */
		if (refusal == REFUSAL_UNREACHABLE &&
		    now_ms > began_ms + AGAIN_PAUSE_MS)
			again_until_ms = now_ms + AGAIN_MS;
		if (now_ms + AGAIN_PAUSE_MS > again_until_ms ||
		    now_ms + AGAIN_PAUSE_MS > until_ms)
			return refusal;
		if (request->unless != NULL)
			gone = *request->unless;
		if (poll(&gone, 1, AGAIN_PAUSE_MS) > 0)
			return refusal;
	}
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

/* A question that is answered by a bare GRANTED; fd: the connection is kept
 * there. */
static enum refusal
lease_command(const char *socket_path, const struct frame *question, int *fd,
    int wait_ms, struct err *err)
{
	auto_ask struct ask ask = ASK_NONE;
	enum refusal outcome = ask_broker(&ask, socket_path, question,
	    FRAME_GRANTED, wait_ms, err);

	if (fd != NULL)
		*fd = outcome == REFUSAL_NONE ? steal_fd(&ask.sock) : -1;
	return outcome;
}

static enum refusal
ask_kept(const char *socket_path, const char *sandbox, bool stop,
    int64_t *rest_ms, int wait_ms, struct err *err)
{
	auto_ask struct ask ask = ASK_NONE;
	struct frame question;
	enum refusal outcome;

	frame_start(&question, FRAME_KEPT);
	frame_add_text(&question, TAG_SANDBOX, sandbox);
	if (stop)
		frame_add_int(&question, TAG_RETIRE, 1);
	outcome = ask_broker(&ask, socket_path, &question, FRAME_GRANTED,
	    wait_ms, err);
	*rest_ms = -1;
	if (outcome == REFUSAL_NONE)
		(void)frame_get_int(&ask.view, TAG_REST_MS, rest_ms);
	return outcome;
}

enum refusal
lease_kept(const char *socket_path, const char *sandbox, bool stop,
    int64_t *rest_ms, int wait_ms, struct err *err)
{
	int64_t until_ms = clock_monotonic_ms() + AGAIN_MS;

	for (;;) {
		enum refusal refusal = ask_kept(socket_path, sandbox, stop,
		    rest_ms, wait_ms, err);

		if ((refusal != REFUSAL_UNREACHABLE &&
			refusal != REFUSAL_BUSY) ||
		    clock_monotonic_ms() + AGAIN_PAUSE_MS > until_ms)
			return refusal;
		(void)poll(NULL, 0, AGAIN_PAUSE_MS);
	}
}

enum refusal
lease_create_workspace(const char *socket_path, const char *sandbox,
    int64_t quota_bytes, int64_t quota_files, int wait_ms, struct err *err)
{
	struct frame question;

	frame_start(&question, FRAME_CREATE);
	frame_add_text(&question, TAG_SANDBOX, sandbox);
	frame_add_int(&question, TAG_QUOTA_BYTES, quota_bytes);
	frame_add_int(&question, TAG_QUOTA_FILES, quota_files);
	return lease_command(socket_path, &question, NULL, wait_ms, err);
}

enum refusal
lease_create_packages(const char *socket_path, const char *sandbox,
    const char *interpreter, int wait_ms, struct err *err)
{
	struct frame question;

	frame_start(&question, FRAME_CREATE);
	frame_add_text(&question, TAG_SANDBOX, sandbox);
	frame_add_text(&question, TAG_INTERPRETER, interpreter);
	return lease_command(socket_path, &question, NULL, wait_ms, err);
}

enum refusal
lease_remove_workspace(const char *socket_path, const char *sandbox,
    int wait_ms, struct err *err)
{
	struct frame question;

	frame_start(&question, FRAME_REMOVE);
	frame_add_text(&question, TAG_SANDBOX, sandbox);
	return lease_command(socket_path, &question, NULL, wait_ms, err);
}

enum refusal
lease_reserve(int *fd, const char *socket_path, int64_t bytes, int wait_ms,
    struct err *err)
{
	struct frame question;

	frame_start(&question, FRAME_RESERVE);
	frame_add_int(&question, TAG_SIZE, bytes);
	return lease_command(socket_path, &question, fd, wait_ms, err);
}

/* Take the status apart; what is absent stays zero. */
static void
status_read(struct lease_status *status, const struct frame_view *view)
{
	const struct {
		enum frame_tag tag;
		int64_t *value;
	} numbers[] = {
		{ TAG_CELLS, &status->cells },
		{ TAG_LEASED, &status->leased },
		{ TAG_STARTING, &status->starting },
		{ TAG_WAITING, &status->waiting },
		{ TAG_FREE_BYTES, &status->free_bytes },
		{ TAG_PROMISED, &status->promised },
		{ TAG_FLOOR, &status->floor },
		{ TAG_SANDBOXES, &status->sandboxes },
		{ TAG_ISOLATION, &status->isolation },
		{ TAG_ENGINE_AGE, &status->engine_age_ms },
	};
	int64_t flag = 0;

	status->engine_age_ms = -1;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)frame_get_int(view, numbers[i].tag, numbers[i].value);
	(void)frame_get_text(view, TAG_IMAGE_NAME, status->image_name,
	    sizeof(status->image_name));
	(void)frame_get_text(view, TAG_IMAGES, status->images,
	    sizeof(status->images));
	(void)frame_get_text(view, TAG_TROUBLE, status->trouble,
	    sizeof(status->trouble));
	(void)frame_get_text(view, TAG_PYTHON, status->python,
	    sizeof(status->python));
	(void)frame_get_text(view, TAG_TEXT, status->isolation_reason,
	    sizeof(status->isolation_reason));
	status->engine = frame_get_int(view, TAG_ENGINE, &flag) && flag == 1;
	status->image = frame_get_int(view, TAG_IMAGE, &flag) && flag == 1;
	(void)frame_get_text(view, TAG_CHAT_IMAGES, status->chat_images,
	    sizeof(status->chat_images));
	if (images_check(status->images) != NULL)
		status->images[0] = '\0';
	if (images_check(status->chat_images) != NULL)
		status->chat_images[0] = '\0';
}

enum refusal
lease_status(const char *socket_path, struct lease_status *status, int wait_ms,
    struct err *err)
{
	auto_ask struct ask ask = ASK_NONE;
	enum refusal outcome;
	struct frame question;

	*status = (struct lease_status){ 0 };
	frame_start(&question, FRAME_STATUS);
	outcome = ask_broker(&ask, socket_path, &question, FRAME_STATUS_IS,
	    wait_ms, err);
	if (outcome == REFUSAL_NONE)
		status_read(status, &ask.view);
	return outcome;
}
