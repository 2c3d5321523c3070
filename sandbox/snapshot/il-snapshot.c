/* SPDX-License-Identifier: MIT */
/*
 * il-snapshot: saves sandboxes to where another host finds them, and restores
 * them from there (IL_SNAPSHOTS).
 *
 * It may: read the volumes under IL_BASE_DIR, make new sandboxes there, read
 * IL_API_FILES, reach the place of the snapshots over the network.  It may
 * never: call Docker, touch the database, mount or look into a volume, change
 * one that is there.
 *
 * Who speaks with it
 *	the kernel	inotify: a volume was let go of
 *	il-worker	STATE/broker/worker/snapshot.sock: restore, forget
 *	ilctl		STATE/broker/ctl/snapshot.sock: forget
 *	il-api		STATE/broker/api/snapshot.sock: give a file's copy
 * and it tells how it is by STATE/snapshot-VERSION (../protocol/snapshot.h).
 *
 *	a cell ends ──▶ its loop device closes the volume ──▶ inotify
 *	                                                        │ 1 s
 *	   manifest, blocks ◀── a process: lock, read, compare ◀┘
 *	   in a folder or S3      of each sandbox, two at a time
 *
 * This process has one loop and no network: watch.c knows the sandboxes,
 * requests.c who asks, tasks.c begins processes and hears of their end.  A
 * process does one thing: save.c, restore.c, forget.c; object.c is what a
 * snapshot consists of, store.h where it is: folder.c or s3.c with
 * s3_answer.c.  All of them may be killed at any moment.
 *
 * Where there are several hosts, files of the HTTP APIs are copied as well:
 * copies.c knows which have come and gone, copy.c is a process that puts and
 * removes copies, copy_serve.c one that gives il-api one.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <sodium.h>

#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/fd.h"
#include "../base/log.h"
#include "../base/loop.h"
#include "../protocol/snapshot.h"
#include "snapshotter.h"
#include "store.h"

#define EXIT_USAGE 64
#define EXIT_CONFIG 78
/* To save what was let go of, after a signal. */
#define STOP_MS 60000
#define LOCK_SECONDS 5

static void __attribute__((noreturn)) usage_exit(void)
{
	(void)fputs("usage: il-snapshot [-tVv] [-e envfile]\n", stderr);
	exit(EXIT_USAGE);
}

static void
on_stop_deadline(void *arg)
{
	struct snapshotter *s = arg;

	loop_stop(s->loop);
}

/* What waits to be saved is, first.  The second signal waits for nothing. */
static void
on_signal(void *arg, int fd, uint32_t events)
{
	struct snapshotter *s = arg;
	struct signalfd_siginfo info;
	bool child = false;
	bool told;

	(void)events;
	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			child = true;
			continue;
		}
		told = s->stopping_ms != 0;
		if (fd_signal_is_echo(&s->stopping_ms))
			continue;
		if (told)
			loop_stop(s->loop);
		else
			loop_timer_set(s->loop, NULL, STOP_MS, on_stop_deadline,
			    s);
	}
	if (child)
		tasks_reap(s);
	else
		snapshotter_look(s);
}

static void
on_alarm(int number)
{
	(void)number;
}

/* One of us for a state folder: the drafts of its sandboxes are ours to sweep.
 * The processes of one that was killed have the lock as well, and are about to
 * end. */
static int
lock_state(const struct config *config, struct err *err)
{
	auto_free char *path = config_state_path(config, SNAPSHOT_LOCK_FILE);
	const struct sigaction act = { .sa_handler = on_alarm };
	bool locked;
	int fd;

	if (fd_make_dirs(config->state_dir, 0755, err) != 0)
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_system(err, "%s", path);
	(void)sigaction(SIGALRM, &act, NULL);
	(void)alarm(LOCK_SECONDS);
	locked = flock(fd, LOCK_EX) == 0;
	(void)alarm(0);
	if (locked)
		return fd;
	(void)close(fd);
	return err_set(err, ERR_BUSY, "another il-snapshot has %s", path);
}

static int
serve(struct snapshotter *s, struct err *err)
{
	const struct config *config = s->config;
	auto_close int signals = fd_signals(SIGCHLD, err);
	auto_close int lock = signals < 0 ? -1 : lock_state(config, err);
	struct store *store = NULL;

	if (lock < 0 || fd_make_dirs(config->base_dir, 0700, err) != 0)
		return -1;
	s->base = open(config->base_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->base < 0)
		return err_system(err, "%s", config->base_dir);
	/* what is wrong with the configuration is told at the start */
	store = store_open(config, err);
	if (store == NULL)
		return -1;
	store_close(store);
	restore_sweep(s->base);
	s->state = snapshot_state_open(config, err);
	if (s->state == NULL)
		return -1;
	s->state->failing_ms = 0;
	s->state->files_failing_ms = 0;
	if (tasks_open(s, err) != 0)
		return -1;
	s->loop = loop_new();
	loop_add(s->loop, signals, EPOLLIN, on_signal, s);
	if (copies_open(s, err) != 0 || requests_open(s, err) != 0 ||
	    watch_open(s, err) != 0)
		return -1;
	log_info("saves to %s", config->snapshots);
	snapshotter_look(s);
	loop_run(s->loop);
	tasks_kill(s);
	return 0;
}

int
main(int argc, char **argv)
{
	const char *env_file = NULL;
	enum log_level level = LOG_LEVEL_INFO;
	bool test = false;
	auto_config struct config config = { 0 };
	struct snapshotter s = { .base = -1 }; /* ends with us */
	struct err err;
	int c;

	while ((c = getopt(argc, argv, "e:tVv")) != -1) {
		if (c == 'e') {
			env_file = optarg;
		} else if (c == 't') {
			test = true;
		} else if (c == 'v') {
			level = LOG_LEVEL_DEBUG;
		} else if (c == 'V') {
			(void)printf("il-snapshot %s\n", INLINE_VERSION);
			return 0;
		} else {
			usage_exit();
		}
	}
	if (optind != argc)
		usage_exit();
	log_init("il-snapshot", level);
	s.config = &config;
	TAILQ_INIT(&s.sandboxes);
	TAILQ_INIT(&s.requests);
	TAILQ_INIT(&s.waiting);
	if (sodium_init() < 0)
		log_fatal(1, "libsodium does not start");
	if (config_load(&config, env_file, &err) != 0)
		log_fatal(EXIT_CONFIG, "%s", err.text);
	if (test)
		return 0;
	if (*config.snapshots == '\0') {
		log_info("IL_SNAPSHOTS is empty: there is nothing to do");
		return 0;
	}
	if (serve(&s, &err) == 0)
		return 0;
	log_err("%s", err.text);
	return err.code == ERR_CONFIG ? EXIT_CONFIG : 1;
}
