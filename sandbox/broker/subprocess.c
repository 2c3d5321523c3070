#include "subprocess.h"

#include <sys/epoll.h>

#include "../base/err.h"
#include "../base/loop.h"

void
subprocess_init(struct subprocess *sub, struct loop *loop)
{
	*sub = (struct subprocess){ .loop = loop };
}

static void subprocess_pump(struct subprocess *sub);

static void
subprocess_on_fd(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	subprocess_pump(arg);
}

static void
subprocess_on_timer(void *arg)
{
	struct subprocess *sub = arg;

	sub->timer = NULL;
	subprocess_pump(sub);
}

static void
subprocess_watch(struct subprocess *sub)
{
	const struct process *p = &sub->process;
	const int fds[] = { p->pidfd, p->out_fd, p->err_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			loop_add(sub->loop, fds[i], EPOLLIN, subprocess_on_fd,
			    sub);
	}
	if (p->in_fd >= 0)
		loop_add(sub->loop, p->in_fd, EPOLLOUT, subprocess_on_fd, sub);
	if (p->deadline_ms >= 0)
		sub->timer = loop_timer_add(sub->loop, p->deadline_ms,
		    subprocess_on_timer, sub);
	sub->watched = true;
}

/* Before each pump: it closes descriptors, and they must be out of the loop
 * by then. */
static void
subprocess_unwatch(struct subprocess *sub)
{
	const struct process *p = &sub->process;
	const int fds[] = { p->pidfd, p->out_fd, p->err_fd, p->in_fd };

	if (!sub->watched)
		return;
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			loop_remove(sub->loop, fds[i]);
	}
	if (sub->timer != NULL)
		loop_timer_cancel(sub->loop, sub->timer);
	sub->timer = NULL;
	sub->watched = false;
}

static void
subprocess_pump(struct subprocess *sub)
{
	struct process_result result;

	subprocess_unwatch(sub);
	if (!process_pump(&sub->process)) {
		subprocess_watch(sub);
		return;
	}
	/* The callback may start the subprocess anew: the result moves out
	 * first. */
	result = sub->process.result;
	buf_init(&sub->process.result.out, 0);
	buf_init(&sub->process.result.err, 0);
	process_release(&sub->process);
	sub->running = false;
	sub->done(sub->arg, &result);
	process_result_release(&result);
}

int
subprocess_start(struct subprocess *sub, const struct process_spec *spec,
    subprocess_fn done, void *arg, struct err *err)
{
	sub->done = done;
	sub->arg = arg;
	if (process_start(&sub->process, spec, err) != 0)
		return -1;
	sub->running = true;
	subprocess_watch(sub);
	return 0;
}

void
subprocess_cancel(struct subprocess *sub)
{
	if (!sub->running)
		return;
	subprocess_unwatch(sub);
	process_release(&sub->process);
	sub->running = false;
}
