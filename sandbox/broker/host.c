/* SPDX-License-Identifier: MIT */
/*
 * The pass over everything, backoff, command lines, and base/process.h on the
 * event loop: before each step all descriptors leave the loop, and afterwards
 * the open ones come back.
 */
#include "broker/host.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/loop.h"

#define OUTPUT_MAX 65536
#define WORD_MAX 65536

void
host_schedule(struct host *host, int64_t at_ms)
{
	if (host->pass != NULL && host->pass_ms <= at_ms)
		return;
	host->pass_ms = at_ms;
	loop_timer_set(host->loop, &host->pass, at_ms - clock_monotonic_ms(),
	    host->run_pass, host);
}

int64_t
host_read_number(int fd, const char *key)
{
	char text[512] = "\n";
	const char *at;

	if (fd < 0 || pread(fd, text + 1, sizeof(text) - 2, 0) <= 0)
		return 0;
	at = strstr(text, key);
	return at == NULL ? 0 : strtoll(at + strlen(key), NULL, 10);
}

/* ---- backoff ---- */

void
pause_note_failure(struct pause *pause, enum refusal code, const char *text,
    int64_t now_ms)
{
	pause->until_ms = now_ms +
	    clock_backoff_ms(PAUSE_FIRST_MS, pause->most_ms, pause->failures);
	pause->failures++;
	pause->code = code;
	(void)snprintf(pause->text, sizeof(pause->text), "%s", text);
}

void
pause_note_success(struct pause *pause)
{
	*pause = (struct pause){ .most_ms = pause->most_ms };
}

bool
pause_holds(const struct pause *pause, int64_t now_ms)
{
	return pause->failures > 0 && now_ms < pause->until_ms;
}

bool
pause_refuses(const struct pause *pause, int64_t now_ms)
{
	return pause->failures > 1 && pause_holds(pause, now_ms);
}

/* ---- the words ---- */

void
argv_init(struct argv *argv, const char *const *words)
{
	*argv = (struct argv){ .count = 0 };
	argv_add_all(argv, words);
}

void
argv_release(struct argv *argv)
{
	for (size_t i = 0; i < argv->count; i++)
		free(argv->words[i]);
	*argv = (struct argv){ .count = 0 };
}

/* The word belongs to the argv now. */
static void
argv_append(struct argv *argv, char *word)
{
	if (argv->count == ARGV_MAX)
		log_fatal(1, "a command of more than %d words", ARGV_MAX);
	argv->words[argv->count++] = word;
	argv->words[argv->count] = NULL;
}

void
argv_add(struct argv *argv, const char *word)
{
	argv_append(argv, xstrdup(word));
}

static void __attribute__((format(printf, 2, 0)))
argv_addv(struct argv *argv, const char *fmt, va_list ap)
{
	auto_buf struct buf word = BUF_INIT(WORD_MAX);

	buf_addv(&word, fmt, ap);
	if (word.overflow)
		log_fatal(1, "a word of more than %d bytes", WORD_MAX);
	argv_append(argv, buf_steal(&word, NULL));
}

void
argv_addf(struct argv *argv, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	argv_addv(argv, fmt, ap);
	va_end(ap);
}

void
argv_option(struct argv *argv, const char *option, const char *fmt, ...)
{
	va_list ap;

	argv_add(argv, option);
	va_start(ap, fmt);
	argv_addv(argv, fmt, ap);
	va_end(ap);
}

void
argv_add_all(struct argv *argv, const char *const *words)
{
	for (; *words != NULL; words++)
		argv_add(argv, *words);
}

/* ---- running it ---- */

static void subprocess_pump(void *arg);

static void
subprocess_on_fd(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	subprocess_pump(arg);
}

/* Add the open pipes, the pidfd and the deadline to the loop. */
static void
subprocess_watch(struct subprocess *sub)
{
	const struct process *p = &sub->process;
	const int fds[] = { p->pidfd, p->out_fd, p->err_fd, p->in_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			loop_add(sub->loop, fds[i],
			    fds[i] == p->in_fd ? EPOLLOUT : EPOLLIN,
			    subprocess_on_fd, sub);
	}
	if (p->deadline_ms >= 0)
		loop_timer_set(sub->loop, &sub->timer,
		    p->deadline_ms - clock_monotonic_ms(), subprocess_pump,
		    sub);
}

/* Called before each pump, which closes descriptors: they must be out of the
 * loop by then. */
static void
subprocess_unwatch(struct subprocess *sub)
{
	const struct process *p = &sub->process;

	loop_remove(sub->loop, p->pidfd);
	loop_remove(sub->loop, p->out_fd);
	loop_remove(sub->loop, p->err_fd);
	loop_remove(sub->loop, p->in_fd);
	loop_timer_clear(sub->loop, &sub->timer);
}

/* The result moves out first, since the callback may start the subprocess
 * again. */
static void
subprocess_end(void *arg)
{
	struct subprocess *sub = arg;
	struct process_result result = sub->process.result;

	buf_init(&sub->process.result.out, 0);
	buf_init(&sub->process.result.err, 0);
	process_release(&sub->process);
	sub->running = false;
	sub->done(sub->arg, &result);
	process_result_release(&result);
}

/* Read and write the pipes, and check the deadline. */
static void
subprocess_pump(void *arg)
{
	struct subprocess *sub = arg;

	subprocess_unwatch(sub);
	if (process_pump(&sub->process))
		subprocess_end(sub);
	else
		subprocess_watch(sub);
}

void
subprocess_start(struct subprocess *sub, struct loop *loop,
    const struct argv *argv, int timeout_ms, subprocess_fn done, void *arg)
{
	struct process_spec spec = { .argv = (const char *const *)argv->words,
		.input = argv->input,
		.input_len = argv->input != NULL ? strlen(argv->input) : 0,
		.output_max = OUTPUT_MAX,
		.timeout_ms = timeout_ms };
	struct process_result *result = &sub->process.result;
	struct err err;

	assert(!sub->running);
	sub->loop = loop;
	sub->done = done;
	sub->arg = arg;
	sub->running = true;
	if (process_start(&sub->process, &spec, &err) == 0) {
		subprocess_watch(sub);
		return;
	}
	/* The loop reports it, like any other end. */
	result->outcome = PROCESS_NOT_STARTED;
	buf_adds(&result->err, err.text);
	loop_timer_set(sub->loop, &sub->timer, 0, subprocess_end, sub);
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
