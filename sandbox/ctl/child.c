/* SPDX-License-Identifier: MIT */
/*
 * The tables of users and groups, and a child from fork() to exec: it becomes
 * one of them for good, and gives up its rights in an order in which each step
 * is still allowed.
 */
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/clock.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "../base/priority.h"
#include "run.h"

#define GROUPS_MAX 3
#define PORT_FREE 1024 /* from here on anybody may listen */
#define BIT(number) (UINT64_C(1) << (number))

/* systemd/README.md has the same table. */
static const struct {
	const char *name;
	size_t count;
	enum account_group groups[GROUPS_MAX];
} users[ACCOUNTS] = {
	[ACCOUNT_FCGI] = { "il-fcgi", 1, { ACCOUNT_GROUP_DB } },
	[ACCOUNT_API] = { "il-api", 2,
	    { ACCOUNT_GROUP_API, ACCOUNT_GROUP_NODES } },
	[ACCOUNT_WORKER] = { "il-worker", 3,
	    { ACCOUNT_GROUP_DB, ACCOUNT_GROUP_WORKER, ACCOUNT_GROUP_NODES } },
	[ACCOUNT_NODE] = { "il-node", 1, { ACCOUNT_GROUP_DB } },
	[ACCOUNT_NGINX] = { "www-data", 1, { ACCOUNT_GROUP_WEB } },
	[ACCOUNT_STANDIN] = { "il-standin", 0, { 0 } },
};

static const char *const group_names[ACCOUNT_GROUPS] = {
	[ACCOUNT_GROUP_DB] = "inline-db",
	[ACCOUNT_GROUP_WORKER] = "inline-broker-worker",
	[ACCOUNT_GROUP_API] = "inline-broker-api",
	[ACCOUNT_GROUP_WEB] = "inline-web",
	[ACCOUNT_GROUP_NODES] = "inline-nodes",
};

/* What the broker may keep as root: its containers' files and devices.  All
 * else (modules, the network, tracing, raw memory, ...) nobody here needs. */
static const uint64_t root_keeps = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) |
    BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_SETGID) |
    BIT(CAP_SETUID) | BIT(CAP_MKNOD) | BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_NICE) |
    BIT(CAP_SYS_RESOURCE);

/* A user or group of that name on the host, or a fixed number; never root. */
void
account_find(struct run *run)
{
	run->separate = geteuid() == 0;
	for (size_t i = 0; i < ACCOUNTS; i++) {
		const struct passwd *user = getpwnam(users[i].name);

		run->uids[i] = (uid_t)(ACCOUNT_FIRST + i);
		run->gids[i] = (gid_t)(ACCOUNT_FIRST + i);
		if (user != NULL && user->pw_uid != 0)
			run->uids[i] = user->pw_uid;
		if (user != NULL && user->pw_gid != 0)
			run->gids[i] = user->pw_gid;
	}
	for (size_t i = ACCOUNTS; i < ACCOUNT_GROUPS; i++) {
		const struct group *group = getgrnam(group_names[i]);

		run->gids[i] = group != NULL ? group->gr_gid :
					       (gid_t)(ACCOUNT_FIRST + i);
	}
}

/* What outlives the change of the user, as permitted, is made to outlive exec:
 * that one capability and no other. */
static int
keep_low_ports(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };

	sets[0].permitted = 1U << CAP_NET_BIND_SERVICE;
	sets[0].inheritable = sets[0].permitted;
	if (syscall(SYS_capset, &header, sets) != 0)
		return -1;
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE,
	    0, 0);
}

/* Groups first, then the user, after which nothing more could be changed. */
static int
drop_identity(const struct run *run, enum account account, bool low_ports)
{
	gid_t groups[GROUPS_MAX];
	gid_t gid = run->gids[account];
	uid_t uid = run->uids[account];

	for (size_t i = 0; i < users[account].count; i++)
		groups[i] = run->gids[users[account].groups[i]];
	if ((low_ports && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) ||
	    setgroups(users[account].count, groups) != 0 ||
	    setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0 ||
	    (low_ports && keep_low_ports() != 0))
		return -1;
	/* as a unit's: nothing of root's is read */
	(void)setenv("HOME", "/nonexistent", 1);
	return chdir("/");
}

/* In a child, before exec: become that user for good, with no capability (but
 * for nginx, on a port below 1024, that of opening it), none that could be had,
 * no other group and no way to new privileges; or stay who we are, with those
 * capabilities, without the latter.  Descriptors from first_fd on are closed at
 * exec.  -1: errno says why.  Bounds go while we still may drop them, the
 * identity next, new privileges last. */
static int
account_assume(const struct run *run, enum account account, int first_fd)
{
	bool low_ports = account == ACCOUNT_NGINX &&
	    run->config->http_port < PORT_FREE;
	uint64_t kept = account == ACCOUNTS ? root_keeps :
	    low_ports			    ? BIT(CAP_NET_BIND_SERVICE) :
					      0;

	/* An ordinary user may not drop bounds, and has none to use.  The
	 * kernel knows more of them than our headers: until it says that there
	 * is no such one. */
	for (int i = 0;
	     run->separate && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if ((kept & BIT(i)) == 0 &&
		    prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0)
			return -1;
	if (run->separate && account != ACCOUNTS &&
	    drop_identity(run, account, low_ports) != 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	/* Linux 5.11; ours are all close-on-exec anyway. */
	(void)syscall(SYS_close_range, (unsigned int)first_fd, ~0U,
	    CLOSE_RANGE_CLOEXEC);
	return 0;
}

/* ---- from fork to exec ---- */

/* sd_listen_fds(3): descriptors from 3 on, and whose they are.  All are moved
 * out of the way first. */
static void
hand_over(const struct child *child)
{
	int moved[CHILD_FDS];
	char text[24];

	for (int i = 0; i < child->fd_count; i++)
		moved[i] = fcntl(child->fds[i], F_DUPFD_CLOEXEC, 3 + CHILD_FDS);
	for (int i = 0; i < child->fd_count; i++)
		(void)dup2(moved[i], 3 + i);
	if (child->stage != STAGE_FRONT)
		return;
	(void)snprintf(text, sizeof(text), "%ld", (long)getpid());
	(void)setenv("LISTEN_PID", text, 1);
	(void)snprintf(text, sizeof(text), "%d", child->fd_count);
	(void)setenv("LISTEN_FDS", text, 1);
}

/* In the child, up to exec: it never returns. */
static void
become(const struct child *child, pid_t parent)
{
	const struct run *run = child->run;
	bool has_view = child->account != ACCOUNTS && run->view_fd >= 0;
	/* What it gets when we die.  nginx would leave its workers behind when
	 * killed; the others hold nothing that does not end with them. */
	int death = child->account == ACCOUNT_NGINX ? SIGTERM : SIGKILL;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;
	bool inside;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setsid(); /* and a process group */
	/* Who answers and who carries comes before what people's code computes:
	 * endless loops delay an answer less (tests/README.md, bench). */
	priority_come_first();
	priority_take_short_slices();
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	/* before its number is one of those that are handed over */
	inside = !has_view || setns(run->view_fd, CLONE_NEWNS) == 0;
	if (inside)
		hand_over(child);
	if (!inside ||
	    account_assume(run, child->account, 3 + child->fd_count) != 0) {
		log_err("%s: to give up rights: %m", child->name);
		_exit(CHILD_NOT_STARTED);
	}
	/* DISCORD_TOKEN is a password. */
	if (child->account != ACCOUNT_WORKER)
		(void)unsetenv("DISCORD_TOKEN");
	/* A change of the user takes the signal away: it comes last. */
	if (prctl(PR_SET_PDEATHSIG, death) != 0 || getppid() != parent ||
	    null < 0)
		_exit(CHILD_NOT_STARTED);
	(void)execvp(child->argv[0], child->argv);
	log_err("%s: %m", child->argv[0]);
	_exit(CHILD_NOT_STARTED);
}

/* The pidfd tells of its end; without one it is not watched, so not run. */
int
child_start(struct child *child, struct err *err)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid < 0)
		return err_system(err, "fork");
	if (pid == 0)
		become(child, parent);
	child->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (child->pidfd < 0) {
		(void)err_system(err, "pidfd_open");
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return -1;
	}
	child->pid = pid;
	child->started_ms = clock_monotonic_ms();
	return 0;
}
