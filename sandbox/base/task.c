#include "task.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "buf.h"
#include "loop.h"
#include "process.h"

enum task_watch { WATCH_END, WATCH_IN, WATCH_OUT, WATCH_ERR, WATCHES };

struct task {
	struct loop *loop;
	struct loop_timer *timer;
	struct process process;
	int watched[WATCHES]; /* in the loop; -1: none */
	bool ended;
	task_fn fn;
	void *arg;
};

static void
task_watch(struct task *task, enum task_watch which, int fd, uint32_t events,
    loop_fd_fn fn)
{
	task->watched[which] = fd;
	if (fd >= 0)
		loop_add(task->loop, fd, events, fn, task);
}

/* Take the descriptor out of the loop when the process has closed it. */
static void
task_unwatch(struct task *task, enum task_watch which, int now)
{
	if (task->watched[which] < 0 || now >= 0)
		return;
	loop_remove(task->loop, task->watched[which]);
	task->watched[which] = -1;
}

static void
task_free(struct task *task)
{
	for (int i = 0; i < WATCHES; i++)
		task_unwatch(task, (enum task_watch)i, -1);
	loop_timer_cancel(task->loop, task->timer);
	process_release(&task->process);
	free(task);
}

static void
task_pump(struct task *task)
{
	bool ended = process_pump(&task->process);

	task_unwatch(task, WATCH_IN, task->process.in_fd);
	task_unwatch(task, WATCH_OUT, task->process.out_fd);
	task_unwatch(task, WATCH_ERR, task->process.err_fd);
	task_unwatch(task, WATCH_END, task->process.pidfd);
	if (!ended)
		return;
	task->ended = true;
	task->fn(task->arg, &task->process.result);
	task_free(task);
}

static void
task_on_fd(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	task_pump(arg);
}

static void
task_on_deadline(void *arg)
{
	struct task *task = arg;

	task->timer = NULL;
	task_pump(task);
}

struct task *
task_start(struct loop *loop, const struct process_spec *spec, task_fn fn,
    void *arg, struct err *err)
{
	struct task *task = xcalloc(1, sizeof(*task));
	const struct process *p = &task->process;

	if (process_start(&task->process, spec, err) != 0) {
		free(task);
		return NULL;
	}
	task->loop = loop;
	task->fn = fn;
	task->arg = arg;
	task_watch(task, WATCH_END, p->pidfd, EPOLLIN, task_on_fd);
	task_watch(task, WATCH_IN, p->in_fd, EPOLLOUT, task_on_fd);
	task_watch(task, WATCH_OUT, p->out_fd, EPOLLIN, task_on_fd);
	task_watch(task, WATCH_ERR, p->err_fd, EPOLLIN, task_on_fd);
	if (p->deadline_ms >= 0)
		task->timer = loop_timer_add(loop, p->deadline_ms,
		    task_on_deadline, task);
	return task;
}

void
task_cancel(struct task *task)
{
	if (task != NULL && !task->ended)
		task_free(task);
}
