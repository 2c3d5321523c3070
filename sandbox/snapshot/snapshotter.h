/* SPDX-License-Identifier: MIT */
#ifndef SNAPSHOTTER_H
#define SNAPSHOTTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "../base/err.h"
#include "copy.h"
#include "task.h"

struct config;
struct copies;
struct inotify_event;
struct loop;
struct loop_timer;
struct snapshot_state;

/* All that il-snapshot knows.  A change ends with snapshotter_look(), which
 * begins what may begin. */
struct snapshotter {
	const struct config *config;
	struct loop *loop;
	int base; /* IL_BASE_DIR */
	struct snapshot_state *state;
	int64_t stopping_ms; /* it was last told to end; 0: it was not */

	/* watch.c */
	int inotify;
	int base_watch;
	TAILQ_HEAD(sandbox_list, sandbox) sandboxes;
	size_t sandbox_count;
	void *by_id;	/* tsearch(3): all of them, */
	void *by_watch; /* and those with a watch */

	/* requests.c */
	size_t request_count;
	size_t copy_count; /* of them: il-api's */
	TAILQ_HEAD(request_list, request) requests;

	/* tasks.c */
	struct task *tasks;	  /* TASKS of them */
	struct outcome *outcomes; /* likewise, which they write */
	TAILQ_HEAD(waiting_list, sandbox) waiting; /* to be saved */
	struct loop_timer *timer;		   /* of the next save */
	int64_t pause_until_ms;			   /* no save begins before */
	int64_t pause_ms;

	struct copies *copies; /* copies.c; NULL: none are made */
};

/* One that is there. */
struct sandbox {
	TAILQ_ENTRY(sandbox) link;
	TAILQ_ENTRY(sandbox) wait; /* with since_ms */
	char id[TASK_ID_SIZE];
	int watch;	  /* -1: none */
	int64_t due_ms;	  /* monotonic: to be saved then; 0: it is not */
	int64_t since_ms; /* wall clock: it has waited since; 0 */
	int tries;	  /* that found it in use */
	bool sweep;	  /* struct saving has it */
	bool again;	  /* it was let go of while it was saved */
};

/* What a program has asked for, until it is answered. */
struct request {
	TAILQ_ENTRY(request) link;
	struct snapshotter *s;
	int fd;
	enum {
		REQUEST_NEW,
		REQUEST_RESTORE,
		REQUEST_FORGET,
		REQUEST_COPY
	} kind;
	bool api;		 /* il-api's, who asks for copies alone */
	char from[TASK_ID_SIZE]; /* of FORGET: which */
	char to[TASK_ID_SIZE];
	char file[SNAPSHOT_FILE_LEN + 1]; /* of COPY */
	bool watched;			  /* fd, by the loop */
	bool running;
	bool late; /* it is killed, as it takes too long */
	bool gone; /* or as its client hung up */
	struct loop_timer *timer;
};

/* What a task writes into memory that it shares with us, before it ends. */
struct outcome {
	int rc;
	struct err err;
	struct saving saving;
	int64_t seconds; /* of a restored one */
	struct copying copying;
	bool begun; /* a copy is told already, or none */
	bool over;
};

/* What they do, and how many of each there may be.  Those of sandboxes are
 * SANDBOX_TASKS together. */
enum task_kind { TASK_SAVE, TASK_ASKED, TASK_COPY, TASK_PASS };
#define SANDBOX_TASKS 8
#define SAVES 2
#define COPIES 3
#define PASSES 1
#define TASKS (SANDBOX_TASKS + COPIES + PASSES)

/* watch.c: look at IL_BASE_DIR from now on; all that is there is due. */
int watch_open(struct snapshotter *s, struct err *err);
/* Take what an inotify says, one after the other, and look. */
void watch_read(struct snapshotter *s, int fd,
    void (*take)(struct snapshotter *s, const struct inotify_event *event));
/* NULL: there is none. */
struct sandbox *watch_find(struct snapshotter *s, const char *id);

/* requests.c */
int requests_open(struct snapshotter *s, struct err *err);
/* It is over. */
void request_end(struct request *request, const struct outcome *outcome);

/* copies.c: look at IL_API_FILES from now on, where there are several hosts. */
int copies_open(struct snapshotter *s, struct err *err);
/* Begin a pass where one is due.  When to look again: monotonic. */
int64_t copies_look(struct snapshotter *s, int64_t now_ms);
/* A stop waits for it. */
bool copies_wait(const struct snapshotter *s, int64_t now_ms);
/* A pass is over. */
void copies_ended(struct snapshotter *s, const struct outcome *outcome);

/* tasks.c */
int tasks_open(struct snapshotter *s, struct err *err);
/* One of them may have ended. */
void tasks_reap(struct snapshotter *s);
/* Begin a pass.  False: that cannot be. */
bool tasks_begin_pass(struct snapshotter *s, const struct copying *copying);
/* Of a request that runs: has something been sent?  And kill it. */
bool tasks_has_begun(const struct snapshotter *s, const struct request *of);
void tasks_kill_request(const struct snapshotter *s, const struct request *of);
void tasks_kill(struct snapshotter *s);
/* Begin what may begin, count, and stop when that is wanted and nothing is left
 * to be saved. */
void snapshotter_look(struct snapshotter *s);
/* A volume of it was let go of. */
void snapshotter_free_again(struct snapshotter *s, struct sandbox *sandbox);
/* It waits no more. */
void snapshotter_leave(struct snapshotter *s, struct sandbox *sandbox);

#endif
