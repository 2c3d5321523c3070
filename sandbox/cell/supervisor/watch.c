/* SPDX-License-Identifier: MIT */
#include "cell/supervisor/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cell/supervisor/base.h"

#define SECOND_NS 1000000000
#define MS_NS 1000000
/* After a small piece of output the pipes are not read for a while, so that the
 * next pieces travel in one frame: a run writes every print() at once.  Each
 * further small piece doubles that rest, up to this; a small piece may be the
 * beginning of a large one, whose writer blocks once the pipe is full. */
#define REST_NS (5 * MS_NS)
#define SHORT_REST_NS (MS_NS / 10)
/* Most runs have ended by then, and their output is passed on at once. */
#define FIRST_REST_NS (2 * MS_NS)
#define SIGNAL_MAX 64
#define SIGNAL_LEN 14 /* bytes of such a frame, with one integer */
#define ENDED (POLLHUP | POLLERR | POLLNVAL)

int64_t
watch_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

void
watch_close(struct watch *watch)
{
	base_close(&watch->feed);
	for (int i = 0; i < WATCH_STREAMS; i++)
		base_close(&watch->outputs[i]);
	base_close(&watch->file);
}

void
watch_start(struct watch *watch, uint64_t wall_ms, uint64_t output_max,
    bool drains)
{
	watch->started = watch_now();
	watch->deadline = watch->started + (int64_t)wall_ms * MS_NS;
	watch->rest = watch->started + FIRST_REST_NS;
	watch->next_rest = SHORT_REST_NS;
	for (int i = 0; i < WATCH_STREAMS; i++)
		watch->left[i] = output_max;
	watch->drains = drains;
	watch->over = false;
	watch->pending = false;
}

/* ---- to the client ---- */

/* Send the frame if there is room.  False: the client is gone. */
static bool
send_if_room(struct watch *watch)
{
	const struct frame *frame = &watch->frame;

	watch->pending = send(watch->lease, frame->data, frame->len,
			     MSG_DONTWAIT | MSG_NOSIGNAL) < 0;
	return !watch->pending || errno == EAGAIN;
}

/* Send the pending frame, however slow the client is. */
static bool
send_pending(struct watch *watch)
{
	while (watch->pending) {
		if (!send_if_room(watch))
			return false;
		if (watch->pending)
			base_wait(watch->control, 0, watch->lease, POLLOUT);
	}
	return true;
}

bool
watch_send(struct watch *watch)
{
	watch->pending = true;
	return send_pending(watch);
}

/* Pass a signal to the group of the run, once it leads one. */
static bool
send_signal(const struct watch *watch, const struct frame_view *view)
{
	int64_t number;

	if (!frame_get_int(view, TAG_SIGNAL, &number) || number < 1 ||
	    number > SIGNAL_MAX)
		return false;
	if (kill(-watch->leader, (int)number) < 0)
		(void)kill(watch->leader, (int)number);
	return true;
}

/* Read a packet of the client during the run: a kind, or a kind and a
 * number. */
static bool
read_client(struct watch *watch)
{
	uint8_t packet[SIGNAL_LEN + 1];
	ssize_t len = recv(watch->lease, packet, sizeof(packet), MSG_DONTWAIT);
	struct frame_view view;

	if (len < 0)
		return errno == EAGAIN;
	if (len == SIGNAL_LEN && frame_parse(&view, packet, SIGNAL_LEN) &&
	    view.kind == FRAME_SIGNAL)
		return send_signal(watch, &view);
	watch->over = true;
	return len == 1 && packet[0] == FRAME_ENOUGH;
}

/* ---- from and to the process ---- */

/* Returns how many of the bytes are within the limit. */
static size_t
count_output(struct watch *watch, int stream, size_t len)
{
	if (len > watch->left[stream]) {
		watch->over = watch->over || !watch->drains;
		len = (size_t)watch->left[stream];
	}
	for (int i = 0; i < WATCH_STREAMS; i++)
		if (!watch->drains || i == stream)
			watch->left[i] -= len;
	return len;
}

/* Set how long the pipes are not read after a piece of output. */
static void
rest_after(struct watch *watch, size_t size)
{
	if (size >= FRAME_CHUNK / 2) {
		watch->next_rest = SHORT_REST_NS;
		return;
	}
	watch->rest = watch_now() + watch->next_rest;
	watch->next_rest *= 2;
	if (watch->next_rest > REST_NS)
		watch->next_rest = REST_NS;
}

/* Pass on one piece of output.  Returns its length, 0: there was none; *gone:
 * the client is gone. */
static size_t
read_output(struct watch *watch, int stream, bool *gone)
{
	ssize_t len = read(watch->outputs[stream], watch->data,
	    sizeof(watch->data));
	size_t size;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (len <= 0) {
		base_close(&watch->outputs[stream]);
		return 0;
	}
	size = count_output(watch, stream, (size_t)len);
	rest_after(watch, size);
	frame_start(&watch->frame, FRAME_OUTPUT);
	frame_add_int(&watch->frame, TAG_STREAM, stream + 1);
	frame_add_bytes(&watch->frame, TAG_DATA, watch->data, size);
	if (size > 0 && !send_if_room(watch))
		*gone = true;
	return (size_t)len;
}

/* Write as much standard input as fits; close it after the last byte. */
static void
feed_some(struct watch *watch)
{
	while (watch->file_at < watch->file_end) {
		off_t at = (off_t)watch->file_at;
		ssize_t sent = sendfile(watch->feed, watch->file, &at,
		    (size_t)(watch->file_end - watch->file_at));

		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent <= 0)
			break; /* the process has closed it */
		watch->file_at = at;
	}
	base_close(&watch->feed);
}

/* ---- the loop ---- */

enum { CONTROL, LEASE, PROCESS, WORD, FEED, OUTPUTS };
#define POLLED (OUTPUTS + WATCH_STREAMS)

/* False: a signal has come. */
static bool
wait_for_any(const struct watch *watch, struct pollfd *p)
{
	int64_t now = watch_now();
	int64_t until = watch->deadline;
	bool reads = !watch->pending && now >= watch->rest;
	struct timespec left;
	static const sigset_t none;

	p[CONTROL] = (struct pollfd){ watch->control, POLLIN, 0 };
	p[LEASE] = (struct pollfd){ watch->lease,
		(short)(POLLIN | (watch->pending ? POLLOUT : 0)), 0 };
	p[PROCESS] = (struct pollfd){ watch->process, POLLIN, 0 };
	p[WORD] = (struct pollfd){ watch->word, POLLIN, 0 };
	p[FEED] = (struct pollfd){ watch->feed, POLLOUT, 0 };
	for (int i = 0; i < WATCH_STREAMS; i++)
		p[OUTPUTS + i] = (struct pollfd){
			reads ? watch->outputs[i] : -1, POLLIN, 0
		};
	/* wake up for the end of the rest */
	if (!watch->pending && !reads && watch->rest < until)
		until = watch->rest;
	until = until > now ? until - now : 0;
	left = (struct timespec){ .tv_sec = until / SECOND_NS,
		.tv_nsec = until % SECOND_NS };
	return ppoll(p, POLLED, &left, &none) >= 0;
}

/* Returns whether the client is still there. */
static bool
serve_ready(struct watch *watch, const struct pollfd *p)
{
	bool gone = false;

	if ((p[LEASE].revents & ENDED) != 0 ||
	    ((p[LEASE].revents & POLLIN) != 0 && !read_client(watch)))
		return false;
	if (p[FEED].revents != 0)
		feed_some(watch);
	if (watch->pending && (p[LEASE].revents & POLLOUT) != 0 &&
	    !send_if_room(watch))
		return false;
	for (int i = 0; i < WATCH_STREAMS && !gone; i++)
		if (p[OUTPUTS + i].revents != 0 && !watch->pending)
			(void)read_output(watch, i, &gone);
	return !gone;
}

/* Does the process say that it rests?  False: it has closed its channel. */
static bool
says_word(struct watch *watch)
{
	uint8_t word;

	if (recv(watch->word, &word, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
		return true;
	watch->word = -1;
	return false;
}

enum watch_end
watch_run(struct watch *watch)
{
	struct pollfd p[POLLED];

	feed_some(watch);
	for (;;) {
		if (watch_now() >= watch->deadline)
			return WATCH_TIME;
		if (!wait_for_any(watch, p))
			return WATCH_CHILD;
		if ((p[CONTROL].revents & ENDED) != 0)
			base_leave();
		if (p[CONTROL].revents != 0)
			return WATCH_BESIDE;
		if (!serve_ready(watch, p))
			return WATCH_GONE;
		/* its last output is in the pipes: watch_drain() */
		if (p[PROCESS].revents != 0)
			return WATCH_ENDED;
		if (watch->over)
			return WATCH_OUTPUT;
		if (p[WORD].revents != 0 && says_word(watch))
			return WATCH_RESTS;
	}
}

/* Pass on at most the content of a full pipe: a background process may go on
 * filling it. */
static bool
drain_stream(struct watch *watch, int stream)
{
	long left = fcntl(watch->outputs[stream], F_GETPIPE_SZ);
	bool gone = false;
	size_t len = 1;

	while (!gone && !watch->over && left > 0 && len > 0) {
		len = read_output(watch, stream, &gone);
		left -= (long)len;
		gone = gone || !send_pending(watch);
	}
	return !gone;
}

bool
watch_drain(struct watch *watch)
{
	bool there = send_pending(watch);

	for (int i = 0; i < WATCH_STREAMS && there; i++)
		there = drain_stream(watch, i);
	return there;
}
