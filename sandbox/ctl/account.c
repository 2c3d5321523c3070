/* SPDX-License-Identifier: MIT */
/*
 * The tables of users and groups, and how a process becomes one of them for
 * good.
 */
#include "account.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const user_names[ACCOUNTS] = {
	[ACCOUNT_FCGI] = "il-fcgi",
	[ACCOUNT_API] = "il-api",
	[ACCOUNT_WORKER] = "il-worker",
	[ACCOUNT_NGINX] = "www-data",
	[ACCOUNT_STANDIN] = "il-standin",
};

static const char *const group_names[ACCOUNT_GROUPS] = {
	[ACCOUNT_GROUP_DB] = "inline-db",
	[ACCOUNT_GROUP_WORKER] = "inline-broker-worker",
	[ACCOUNT_GROUP_API] = "inline-broker-api",
	[ACCOUNT_GROUP_WEB] = "inline-web",
};

#define PORT_FREE 1024 /* from here on anybody may listen */

/* systemd/README.md has the same table. */
static const struct {
	size_t count;
	enum account_group groups[ACCOUNT_GROUPS_MAX];
} memberships[ACCOUNTS] = {
	[ACCOUNT_FCGI] = { 1, { ACCOUNT_GROUP_DB } },
	[ACCOUNT_API] = { 1, { ACCOUNT_GROUP_API } },
	[ACCOUNT_WORKER] = { 2, { ACCOUNT_GROUP_DB, ACCOUNT_GROUP_WORKER } },
	[ACCOUNT_NGINX] = { 1, { ACCOUNT_GROUP_WEB } },
};

/* What the broker may keep as root: its containers' files and devices.  All
 * else (modules, the network, tracing, raw memory, ...) nobody here needs. */
static const int root_keeps[] = { CAP_CHOWN, CAP_DAC_OVERRIDE,
	CAP_DAC_READ_SEARCH, CAP_FOWNER, CAP_FSETID, CAP_KILL, CAP_SETGID,
	CAP_SETUID, CAP_MKNOD, CAP_SYS_ADMIN, CAP_SYS_NICE, CAP_SYS_RESOURCE };

/* A user of that name on the host, or a fixed number; never root. */
void
accounts_find(struct accounts *accounts, int64_t http_port)
{
	*accounts = (struct accounts){ .separate = geteuid() == 0 };
	for (size_t i = 0; accounts->separate && i < ACCOUNT_GROUPS; i++) {
		const struct group *group = getgrnam(group_names[i]);

		accounts->groups[i] = group != NULL ?
		    group->gr_gid :
		    (gid_t)(ACCOUNT_FIRST + ACCOUNTS + i);
	}
	for (size_t i = 0; accounts->separate && i < ACCOUNTS; i++) {
		const struct passwd *user = getpwnam(user_names[i]);
		struct account *a = &accounts->of[i];
		uid_t fixed = (uid_t)(ACCOUNT_FIRST + i);

		a->uid = user != NULL && user->pw_uid != 0 ? user->pw_uid :
							     fixed;
		a->gid = user != NULL && user->pw_gid != 0 ? user->pw_gid :
							     (gid_t)fixed;
		a->group_count = memberships[i].count;
		for (size_t k = 0; k < a->group_count; k++)
			a->groups[k] = accounts
					   ->groups[memberships[i].groups[k]];
	}
	accounts->of[ACCOUNT_NGINX].low_ports = http_port < PORT_FREE;
}

const struct account *
accounts_get(const struct accounts *accounts, enum account_name name)
{
	return accounts->separate ? &accounts->of[name] : NULL;
}

static bool
root_may_keep(int capability)
{
	for (size_t i = 0; i < sizeof(root_keeps) / sizeof(root_keeps[0]); i++)
		if (root_keeps[i] == capability)
			return true;
	return false;
}

/* The kernel knows more of them than our headers: until it says that there is
 * no such one. */
static int
drop_bounds(const struct account *account)
{
	for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++) {
		bool keep = account == NULL ?
		    root_may_keep(i) :
		    account->low_ports && i == CAP_NET_BIND_SERVICE;

		if (!keep && prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0)
			return -1;
	}
	return 0;
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
drop_identity(const struct account *a)
{
	if ((a->low_ports && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) ||
	    setgroups(a->group_count, a->groups) != 0 ||
	    setresgid(a->gid, a->gid, a->gid) != 0 ||
	    setresuid(a->uid, a->uid, a->uid) != 0 ||
	    (a->low_ports && keep_low_ports() != 0))
		return -1;
	return chdir("/");
}

/* Bounds go while we still may drop them, the identity next, new privileges
 * last. */
int
account_assume(const struct account *account, int first_fd)
{
	/* An ordinary user may not drop bounds, and has none to use. */
	if (geteuid() == 0 && drop_bounds(account) != 0)
		return -1;
	if (account != NULL && drop_identity(account) != 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	/* Linux 5.11; ours are all close-on-exec anyway. */
	(void)syscall(SYS_close_range, (unsigned int)first_fd, ~0U,
	    CLOSE_RANGE_CLOEXEC);
	return 0;
}
