#include "children.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run_state.h"

pid_t
children_clone(const struct supervisor *k)
{
	pid_t pid;
	int code;

	k->before_fork();
	pid = fork();
	code = errno;
	if (pid == 0)
		k->in_child();
	else
		k->in_parent();
	errno = code;
	return pid;
}

static void
note(struct run_state *state, pid_t pid, int status, const struct rusage *usage)
{
	if (pid == state->run) {
		state->status = status;
		state->usage = *usage;
	} else if (pid == state->init) {
		state->init = 0;
	}
}

bool
children_reap(struct run_state *state, pid_t pid)
{
	struct rusage usage;
	int status = 0;
	pid_t found;

	do
		found = wait4(pid, &status, 0, &usage);
	while (found < 0 && errno == EINTR);
	if (found > 0)
		note(state, found, status, &usage);
	return found > 0;
}

void
children_kill_all(struct run_state *state)
{
	if (state->init > 0)
		(void)kill(state->init, SIGKILL);
	while (children_reap(state, -1))
		;
}

/* The line "oom_kill N" of memory.events (cgroup v2) and of memory.oom_control
 * (v1). */
int64_t
children_count_ooms(const struct supervisor *k)
{
	static const char key[] = "\noom_kill ";
	char text[512] = "\n";
	const char *at;
	int64_t count = 0;
	ssize_t len = -1;

	if (k->ooms >= 0)
		len = pread(k->ooms, text + 1, sizeof(text) - 2, 0);
	if (len <= 0)
		return 0;
	text[1 + len] = '\0';
	at = strstr(text, key);
	if (at == NULL)
		return 0;
	for (at += sizeof(key) - 1; *at >= '0' && *at <= '9'; at++)
		count = count * 10 + (*at - '0');
	return count;
}
