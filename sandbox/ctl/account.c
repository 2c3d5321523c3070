/* SPDX-License-Identifier: MIT */
/*
 * The tables of users and groups, and how a process becomes one of them for
 * good.
 */
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../base/config.h"
#include "run.h"

#define GROUPS_MAX 2
#define PORT_FREE 1024 /* from here on anybody may listen */
#define BIT(number) (UINT64_C(1) << (number))

/* systemd/README.md has the same table. */
static const struct {
	const char *name;
	size_t count;
	enum account_group groups[GROUPS_MAX];
} users[ACCOUNTS] = {
	[ACCOUNT_FCGI] = { "il-fcgi", 1, { ACCOUNT_GROUP_DB } },
	[ACCOUNT_API] = { "il-api", 1, { ACCOUNT_GROUP_API } },
	[ACCOUNT_WORKER] = { "il-worker", 2,
	    { ACCOUNT_GROUP_DB, ACCOUNT_GROUP_WORKER } },
	[ACCOUNT_NGINX] = { "www-data", 1, { ACCOUNT_GROUP_WEB } },
	[ACCOUNT_STANDIN] = { "il-standin", 0, { 0 } },
};

static const char *const group_names[ACCOUNT_GROUPS] = {
	[ACCOUNT_GROUP_DB] = "inline-db",
	[ACCOUNT_GROUP_WORKER] = "inline-broker-worker",
	[ACCOUNT_GROUP_API] = "inline-broker-api",
	[ACCOUNT_GROUP_WEB] = "inline-web",
};

/* What the broker may keep as root: its containers' files and devices.  All
 * else (modules, the network, tracing, raw memory, ...) nobody here needs. */
static const uint64_t root_keeps = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) |
    BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) | BIT(CAP_FSETID) |
    BIT(CAP_KILL) | BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_MKNOD) |
    BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_NICE) | BIT(CAP_SYS_RESOURCE);

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
	return chdir("/");
}

/* Bounds go while we still may drop them, the identity next, new privileges
 * last. */
int
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
