/* SPDX-License-Identifier: MIT */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
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

/* Fires once at the monotonic time; the loop owns and frees the timer, either
 * after it fired or when it is cancelled. */
struct loop_timer *loop_timer_add(struct loop *loop, int64_t at_ms,
    loop_timer_fn fn, void *arg);
void loop_timer_cancel(struct loop *loop, struct loop_timer *timer);

/* Run callbacks until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

#endif
