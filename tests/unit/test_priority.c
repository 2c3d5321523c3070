/* SPDX-License-Identifier: MIT */
#include "base/process.h"

#include <linux/sched/types.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

#define SHORT_NS 100000

static struct sched_attr
attributes(void)
{
	struct sched_attr attr = { .size = 0 };

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0)
		abort();
	return attr;
}

static int64_t
nice_of_group(void)
{
	FILE *file = fopen("/proc/self/autogroup", "re");
	int64_t value = 0;

	if (file == NULL)
		return INT64_MAX;
	if (fscanf(file, "/autogroup-%*d nice %" SCNd64, &value) != 1)
		value = INT64_MAX;
	(void)fclose(file);
	return value;
}

/* In a session of its own, as its contract has it. */
static void
come_first(void)
{
	int before = getpriority(PRIO_PROCESS, 0);
	int64_t want = geteuid() == 0 ? -10 : before;
	int64_t want_group = geteuid() == 0 ? -10 : 0;
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		int64_t group;

		(void)setsid();
		process_come_first();
		group = nice_of_group();
		_exit(getpriority(PRIO_PROCESS, 0) == want &&
			    (group == want_group || group == INT64_MAX) ?
			0 :
			1);
	}
	is_int(waitpid(child, &status, 0), child, "a child");
	is_int(status, 0, "it and its session come first, when it is root");
	is_int(getpriority(PRIO_PROCESS, 0), before, "we do not");
}

int
main(void)
{
	bool known = attributes().sched_runtime != 0; /* Linux 6.12 and newer */
	pid_t child;
	int status = 0;

	come_first();
	(void)setpriority(PRIO_PROCESS, 0, 19);
	process_take_short_slices();
	is_int((int64_t)attributes().sched_runtime, known ? SHORT_NS : 0,
	    "short slices, where there are any");
	is_int(attributes().sched_nice, 19, "the same priority");
	child = fork();
	if (child == 0)
		_exit(attributes().sched_runtime == (known ? SHORT_NS : 0) ? 0 :
									     1);
	is_int(waitpid(child, &status, 0), child, "a child");
	is_int(status, 0, "has them, too");
	return tap_done();
}
