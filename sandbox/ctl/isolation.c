/* SPDX-License-Identifier: MIT */
/*
 * Looks at the host's switches, tries the first steps of a jail outside of any
 * container, and finds the one cause in a table.
 */
#include "isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../base/apparmor.h"
#include "../base/cleanup.h"
#include "../base/text.h"

#define NOBODY 65532
#define NUMBER_MAX 24
#define ENGINES_PROFILE "docker-default"
#define LOAD_OURS "apparmor_parser -r /etc/apparmor.d/" APPARMOR_PROFILE

/* The fact, if a small file of the kernel's has this number ("Y" is 1). */
static unsigned int
look_at(const char *path, int64_t number, enum isolation_host fact)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[NUMBER_MAX];
	ssize_t len = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	int64_t value;

	text[len > 0 ? len : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text_parse_int(strcmp(text, "Y") == 0 ? "1" : text, number,
		   number, &value) ?
	    (unsigned int)fact :
	    0;
}

/* What jail.py begins with, as an unprivileged process.  Returns the errno. */
static int
try_steps(void)
{
	if (geteuid() == 0 &&
	    (setgroups(0, NULL) != 0 ||
		setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
		setresuid(NOBODY, NOBODY, NOBODY) != 0))
		return errno;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return errno;
	if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, NULL) != 0)
		return errno;
	return 0;
}

/* In a child, which gives up root for it. */
static void
try_outside(char *text, size_t size)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(try_steps());
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		(void)snprintf(text, size, "could not be tried");
	else if (WEXITSTATUS(status) != 0)
		(void)snprintf(text, size, "%s",
		    strerrorname_np(WEXITSTATUS(status)));
	else
		*text = '\0';
}

void
isolation_look(struct isolation_facts *facts, const char *profile,
    const char *runtime)
{
	*facts = (struct isolation_facts){ .profile = profile,
		.runtime = runtime };
	facts->host = look_at("/proc/sys/kernel/unprivileged_userns_clone", 0,
			  HOST_NOT_ALLOWED) |
	    look_at("/proc/sys/user/max_user_namespaces", 0,
		HOST_NONE_AT_MOST) |
	    look_at("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1,
		HOST_RESTRICTED) |
	    look_at("/sys/module/apparmor/parameters/enabled", 1,
		HOST_APPARMOR) |
	    look_at("/sys/fs/selinux/enforce", 1, HOST_SELINUX);
	if (access("/proc/self/ns/user", F_OK) != 0)
		facts->host |= HOST_NO_NAMESPACES;
	if (apparmor_is_loaded(APPARMOR_PROFILE))
		facts->host |= HOST_LOADED;
	try_outside(facts->outside, sizeof(facts->outside));
}

/* What was found of the step that failed, beside what the host is like. */
enum {
	ASKED_FOR = 1 << 8,
	UNMADE = 1 << 9, /* the kernel makes no namespaces for anybody without
			    privileges */
	USED_UP = 1 << 10,
	BY_PROFILE = 1 << 11, /* AppArmor's, which forbids the step */
	ENGINES = 1 << 12,    /* that is Docker's own, */
	OURS = 1 << 13,	      /* or the one that comes with us */
	CHOSEN = 1 << 14,     /* IL_API_APPARMOR names it */
	DENIED = 1 << 15,     /* what security modules say */
	CONTAINED = 1 << 16,  /* it fails outside of containers, too */
	RUNTIME = 1 << 17,
	NO_PROC = 1 << 18, /* the kernel mounts none, */
	COVERED = 1 << 19, /* as parts of the container's are covered */
	NO_OVERLAY = 1 << 20,
};

static const char engines_forbids[] =
    "AppArmor is on, and Docker's own profile forbids user namespaces or "
    "mounts";
static const char profile_forbids[] =
    "AppArmor is on, and the profile @ forbids this step";

/* The first row whose needs are found is the verdict.  An @ stands for the
 * profile, or for how it fails outside; in what mends it, for the rule. */
static const struct {
	unsigned int needs;
	const char *cause;
	const char *mend;
} causes[] = {
	{ ASKED_FOR, "IL_API_ISOLATION asks for it", "IL_API_ISOLATION=auto" },
	{ NO_PROC | COVERED,
	    "the container's /proc has parts that are covered, by the engine "
	    "or by what contains it",
	    "an engine that takes --security-opt systempaths=unconfined" },
	{ NO_PROC, "this kernel mounts no /proc of processes alone",
	    "Linux 5.8 or later" },
	{ NO_OVERLAY, "this kernel mounts no overlay in a user namespace",
	    "Linux 5.11 or later, with CONFIG_OVERLAY_FS" },
	{ UNMADE | HOST_NO_NAMESPACES,
	    "this kernel is built without user namespaces",
	    "a kernel with CONFIG_USER_NS" },
	{ UNMADE | HOST_NOT_ALLOWED, "kernel.unprivileged_userns_clone is 0",
	    "sysctl -w kernel.unprivileged_userns_clone=1, and the same in "
	    "/etc/sysctl.d" },
	{ UNMADE | HOST_NONE_AT_MOST, "user.max_user_namespaces is 0",
	    "sysctl -w user.max_user_namespaces=10000, and the same in "
	    "/etc/sysctl.d" },
	{ UNMADE | USED_UP,
	    "user.max_user_namespaces is used up, here or where the engine "
	    "itself is contained",
	    "sysctl -w user.max_user_namespaces=10000, there" },
	{ BY_PROFILE | ENGINES | CHOSEN, engines_forbids,
	    "leave IL_API_APPARMOR empty: " APPARMOR_PROFILE
	    ", which comes with Inline, is used where it is loaded" },
	{ BY_PROFILE | ENGINES | HOST_LOADED, engines_forbids,
	    "systemctl restart il-sandboxd: " APPARMOR_PROFILE
	    " is loaded by now" },
	{ BY_PROFILE | ENGINES, engines_forbids,
	    "load " APPARMOR_PROFILE ", which comes with Inline: " LOAD_OURS
	    " && systemctl restart il-sandboxd" },
	{ BY_PROFILE | OURS, profile_forbids,
	    "load the profile of this version: make install && " LOAD_OURS
	    " && systemctl restart il-sandboxd; and look at "
	    "/etc/apparmor.d/local/" APPARMOR_PROFILE },
	{ BY_PROFILE, profile_forbids,
	    "allow `@` in that profile, as /etc/apparmor.d/" APPARMOR_PROFILE
	    " does, or leave IL_API_APPARMOR empty to use that one" },
	{ HOST_RESTRICTED, "kernel.apparmor_restrict_unprivileged_userns is 1",
	    "leave IL_API_APPARMOR empty and load " APPARMOR_PROFILE
	    " (" LOAD_OURS "), or set that sysctl to 0" },
	{ DENIED | HOST_SELINUX, "SELinux enforces",
	    "look at `ausearch -m avc` for what it forbids" },
	{ CONTAINED,
	    "this host forbids it to every process without privileges (@); it "
	    "may be contained itself",
	    "allow user namespaces and mounts in what contains this host" },
	{ RUNTIME, "it works outside of containers; SANDBOX_RUNTIME forbids it",
	    "leave SANDBOX_RUNTIME empty, if its own isolation is not what you "
	    "want" },
	{ 0,
	    "it works outside of containers: the engine, or its default "
	    "runtime, forbids it",
	    "" },
};

/* Put the value in the place of the @ in a text, if there is one. */
static void
fill(char *out, size_t size, const char *text, const char *value)
{
	const char *at = strchr(text, '@');

	if (at == NULL)
		(void)snprintf(out, size, "%s", text);
	else
		(void)snprintf(out, size, "%.*s%.64s%s", (int)(at - text), text,
		    value, at + 1);
}

bool
isolation_is_of_locks(const char *reason)
{
	static const char step[] = "mount overlay ";

	return strncmp(reason, step, strlen(step)) == 0;
}

/* A reason, taken apart. */
struct failure {
	char step[128];
	char error[32];
	const char *profile; /* that the cell was under */
	bool making;	     /* of namespaces; else of what is done in them */
	/* EACCES is what security modules say; EPERM they say of capabilities,
	 * which the engine's profile and ours allow. */
	bool denied;
	bool capability;
};

static void
read_reason(struct failure *failure, const char *reason,
    const struct isolation_facts *f)
{
	static const char mark[] = ", profile ";
	const char *named = strstr(reason, mark);

	*failure = (struct failure){ 0 };
	(void)sscanf(reason, "%127[^:,]: %31[^,]", failure->step,
	    failure->error);
	/* As it said, or as it must have been. */
	failure->profile = (f->host & HOST_LOADED) != 0 ? APPARMOR_PROFILE :
							  ENGINES_PROFILE;
	if (named != NULL)
		failure->profile = named + strlen(mark);
	else if (*f->profile != '\0')
		failure->profile = f->profile;
	failure->making = strncmp(failure->step, "unshare", 7) == 0 ||
	    strncmp(failure->step, "clone", 5) == 0;
	failure->denied = strcmp(failure->error, "EACCES") == 0;
	failure->capability = strcmp(failure->error, "EPERM") == 0 &&
	    named != NULL && strcmp(failure->profile, ENGINES_PROFILE) != 0 &&
	    strcmp(failure->profile, APPARMOR_PROFILE) != 0;
}

/* The fact, if it is one. */
static unsigned int
fact_if(bool is_so, unsigned int fact)
{
	return is_so ? fact : 0;
}

/* All that is known, as a set. */
static unsigned int
find(const struct failure *failure, const char *reason,
    const struct isolation_facts *f)
{
	bool by_apparmor = (f->host & HOST_APPARMOR) != 0 &&
	    (failure->denied || failure->capability) &&
	    strcmp(failure->profile, "unconfined") != 0;
	bool no_proc = strcmp(failure->step, "mount proc") == 0;
	bool no_overlay = isolation_is_of_locks(failure->step);
	bool engines = strcmp(failure->profile, ENGINES_PROFILE) == 0;
	bool ours = strcmp(failure->profile, APPARMOR_PROFILE) == 0;

	return f->host | fact_if(strcmp(reason, "asked for") == 0, ASKED_FOR) |
	    fact_if(failure->making && !failure->denied, UNMADE) |
	    fact_if(strcmp(failure->error, "ENOSPC") == 0, USED_UP) |
	    fact_if(no_proc && !failure->denied, NO_PROC) |
	    fact_if(no_overlay && !failure->denied, NO_OVERLAY) |
	    fact_if(strcmp(failure->error, "EPERM") == 0, COVERED) |
	    fact_if(by_apparmor, BY_PROFILE) | fact_if(engines, ENGINES) |
	    fact_if(ours, OURS) | fact_if(*f->profile != '\0', CHOSEN) |
	    fact_if(failure->denied, DENIED) |
	    fact_if(*f->outside != '\0', CONTAINED) |
	    fact_if(*f->runtime != '\0', RUNTIME);
}

/* What the profile of an operator has to allow for the step. */
static const char *
rule_for(const struct failure *failure)
{
	if (failure->capability)
		return "capability sys_admin, capability sys_ptrace, "
		       "capability setpcap, capability net_admin,";
	if (failure->making)
		return "userns,";
	if (strncmp(failure->step, "mount", 5) == 0 ||
	    strncmp(failure->step, "move", 4) == 0)
		return "mount,";
	return failure->step;
}

void
isolation_judge(const struct isolation_facts *f, const char *reason,
    struct isolation_verdict *verdict)
{
	struct failure failure;
	unsigned int found;
	size_t i = 0;

	read_reason(&failure, reason, f);
	found = find(&failure, reason, f);
	while ((causes[i].needs & ~found) != 0)
		i++;
	fill(verdict->cause, sizeof(verdict->cause), causes[i].cause,
	    causes[i].needs == CONTAINED ? f->outside : failure.profile);
	fill(verdict->mend, sizeof(verdict->mend), causes[i].mend,
	    rule_for(&failure));
}
