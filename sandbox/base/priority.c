/* SPDX-License-Identifier: MIT */
#include "priority.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cleanup.h"

#define SLICE_NS 100000 /* the least that the kernel gives */
#define FIRST (-10)
#define FIRST_TEXT "-10"

void
priority_take_short_slices(void)
{
	struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_NORMAL,
		.sched_nice = getpriority(PRIO_PROCESS, 0),
		.sched_runtime = SLICE_NS,
	};

	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}

/*
 * Outside of control groups the kernel makes a group of each session (sched(7),
 * "The autogroup feature").  A nice value counts inside of it only; beside
 * containers, the group's counts.
 */
void
priority_come_first(void)
{
	auto_close int group = open("/proc/self/autogroup",
	    O_WRONLY | O_CLOEXEC);

	(void)setpriority(PRIO_PROCESS, 0, FIRST);
	if (group >= 0)
		(void)!write(group, FIRST_TEXT, sizeof(FIRST_TEXT) - 1);
}
