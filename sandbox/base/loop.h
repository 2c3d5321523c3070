/* SPDX-License-Identifier: MIT */
#ifndef LOOP_H
#define LOOP_H

#include <stdint.h>

/*
 * A small event loop (epoll): descriptors and one-shot timers, callbacks in one
 * thread.  A callback may add and remove anything, itself included.
 */
struct loop;
struct loop_timer;

typedef void (*loop_fd_fn)(void *arg, int fd, uint32_t events);
typedef void (*loop_timer_fn)(void *arg);

struct loop *loop_new(void);
void loop_free(struct loop *loop);

/* events: EPOLLIN and so on.  The loop never closes the descriptor; it must be
 * removed before it is closed. */
void loop_add(struct loop *loop, int fd, uint32_t events, loop_fd_fn fn,
    void *arg);
void loop_remove(struct loop *loop, int fd);

/* Remove what is watched, close it and set it to -1.  -1: nothing happens. */
void loop_close(struct loop *loop, int *fd);

/*
 * Call fn once, so many milliseconds from now (none or less: in the next
 * round).  *timer is the caller's mark of it, NULL when no call is due: a timer
 * that is set there is replaced, and it is NULL again when fn is called.  The
 * mark must stay where it is until then.  timer NULL: nobody can clear it.
 */
void loop_timer_set(struct loop *loop, struct loop_timer **timer, int64_t ms,
    loop_timer_fn fn, void *arg);
/* Forget the call, if one is due. */
void loop_timer_clear(struct loop *loop, struct loop_timer **timer);

/* Run callbacks until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

#endif
