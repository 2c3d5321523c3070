#include "task.h"

#include <sys/epoll.h>

#include "../base/err.h"
#include "../base/loop.h"

void
task_init(struct task *task, struct loop *loop)
{
	*task = (struct task){ .loop = loop };
}

static void task_pump(struct task *task);

static void
task_on_fd(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	task_pump(arg);
}

static void
task_on_timer(void *arg)
{
	struct task *task = arg;

	task->timer = NULL;
	task_pump(task);
}

static void
task_watch(struct task *task)
{
	const struct process *p = &task->process;
	const int fds[] = { p->pidfd, p->out_fd, p->err_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			loop_add(task->loop, fds[i], EPOLLIN, task_on_fd, task);
	}
	if (p->in_fd >= 0)
		loop_add(task->loop, p->in_fd, EPOLLOUT, task_on_fd, task);
	if (p->deadline_ms >= 0)
		task->timer = loop_timer_add(task->loop, p->deadline_ms,
		    task_on_timer, task);
	task->watched = true;
}

/* Before each pump: it closes descriptors, and they must be out of the loop
 * by then. */
static void
task_unwatch(struct task *task)
{
	const struct process *p = &task->process;
	const int fds[] = { p->pidfd, p->out_fd, p->err_fd, p->in_fd };

	if (!task->watched)
		return;
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			loop_remove(task->loop, fds[i]);
	}
	if (task->timer != NULL)
		loop_timer_cancel(task->loop, task->timer);
	task->timer = NULL;
	task->watched = false;
}

static void
task_pump(struct task *task)
{
	struct process_result result;

	task_unwatch(task);
	if (!process_pump(&task->process)) {
		task_watch(task);
		return;
	}
	/* The callback may start the task anew: the result moves out first. */
	result = task->process.result;
	buf_init(&task->process.result.out, 0);
	buf_init(&task->process.result.err, 0);
	process_release(&task->process);
	task->running = false;
	task->done(task->arg, &result);
	process_result_release(&result);
}

int
task_start(struct task *task, const struct process_spec *spec, task_fn done,
    void *arg, struct err *err)
{
	task->done = done;
	task->arg = arg;
	if (process_start(&task->process, spec, err) != 0)
		return -1;
	task->running = true;
	task_watch(task);
	return 0;
}

void
task_cancel(struct task *task)
{
	if (!task->running)
		return;
	task_unwatch(task);
	process_release(&task->process);
	task->running = false;
}
