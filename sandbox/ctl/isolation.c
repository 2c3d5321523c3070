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

/* The first line of a small file of the kernel's. */
static bool
read_word(const char *path, char *text, size_t size)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd >= 0 ? read(fd, text, size - 1) : -1;

	text[len > 0 ? len : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return len > 0;
}

static int64_t
read_number(const char *path)
{
	char text[NUMBER_MAX];
	int64_t value;

	return read_word(path, text, sizeof(text)) &&
		text_parse_int(text, 0, INT64_MAX, &value) ?
	    value :
	    -1;
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
	char word[NUMBER_MAX];

	*facts = (struct isolation_facts){
		.namespaces = access("/proc/self/ns/user", F_OK) == 0,
		.allowed =
		    read_number("/proc/sys/kernel/unprivileged_userns_clone"),
		.most = read_number("/proc/sys/user/max_user_namespaces"),
		.restricted = read_number(
		    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		.selinux = read_number("/sys/fs/selinux/enforce") == 1,
		.profile = profile,
		.runtime = runtime,
	};
	facts->loaded = apparmor_is_loaded(APPARMOR_PROFILE);
	facts->apparmor = read_word("/sys/module/apparmor/parameters/enabled",
			      word, sizeof(word)) &&
	    *word == 'Y';
	try_outside(facts->outside, sizeof(facts->outside));
}

/* What a reason says: "mount tmpfs /tmp: EACCES, profile mine". */
struct failure {
	char step[128];
	char error[32];
	char profile[128]; /* "": it was under none, or could not say */
	bool making;	   /* of namespaces; else of what is done in them */
};

/* Take a reason apart. */
static void
failure_read(struct failure *failure, const char *reason)
{
	static const char mark[] = ", profile ";
	const char *profile = strstr(reason, mark);
	const char *colon = strstr(reason, ": ");
	size_t len = strlen(reason);
	int error_len;

	if (profile == NULL)
		profile = reason + len;
	if (colon == NULL || colon > profile)
		colon = profile;
	error_len = colon < profile ? (int)(profile - colon) - 2 : 0;
	(void)snprintf(failure->step, sizeof(failure->step), "%.*s",
	    (int)(colon - reason), reason);
	(void)snprintf(failure->error, sizeof(failure->error), "%.*s",
	    error_len, error_len > 0 ? colon + 2 : "");
	(void)snprintf(failure->profile, sizeof(failure->profile), "%s",
	    *profile != '\0' ? profile + strlen(mark) : "");
	failure->making = strncmp(failure->step, "unshare", 7) == 0 ||
	    strncmp(failure->step, "clone", 5) == 0;
}

/* The profile that the cell was under, as it said, or as it must have been. */
static const char *
profile_in_force(const struct isolation_facts *f, const struct failure *failure)
{
	if (*failure->profile != '\0')
		return failure->profile;
	if (*f->profile != '\0')
		return f->profile;
	return f->loaded ? APPARMOR_PROFILE : ENGINES_PROFILE;
}

/* What the profile of an operator has to allow for the step. */
static const char *
rule_for(const struct failure *failure)
{
	if (strcmp(failure->error, "EPERM") == 0)
		return "capability sys_admin, capability sys_ptrace, "
		       "capability setpcap,";
	if (failure->making)
		return "userns,";
	return strncmp(failure->step, "mount", 5) == 0 ? "mount," :
							 failure->step;
}

static const char engines_forbids[] =
    "AppArmor is on, and Docker's own profile forbids user namespaces or "
    "mounts";

/* What was found is turned into facts; the first row of the table whose facts
 * hold is the answer. */
void
isolation_judge(const struct isolation_facts *f, const char *reason,
    struct isolation_verdict *verdict)
{
	struct failure failure;
	const char *profile;
	char forbids[256];
	char contained[256];
	char allow[320];

	failure_read(&failure, reason);
	profile = profile_in_force(f, &failure);
	(void)snprintf(forbids, sizeof(forbids),
	    "AppArmor is on, and the profile %.64s forbids this step", profile);
	(void)snprintf(allow, sizeof(allow),
	    "allow `%s` in that profile, as /etc/apparmor.d/" APPARMOR_PROFILE
	    " does, or leave IL_API_APPARMOR empty to use that one",
	    rule_for(&failure));
	(void)snprintf(contained, sizeof(contained),
	    "this host forbids it to every process without privileges (%s); "
	    "it may be contained itself",
	    f->outside);

	const bool ours = strcmp(profile, APPARMOR_PROFILE) == 0;
	const bool engines = strcmp(profile, ENGINES_PROFILE) == 0;
	/* EACCES is what security modules say; EPERM they say of capabilities,
	 * which the engine's profile and ours allow. */
	const bool denied = strcmp(failure.error, "EACCES") == 0;
	const bool capability = strcmp(failure.error, "EPERM") == 0 &&
	    !engines && !ours && *failure.profile != '\0';
	const bool by_profile = f->apparmor && (denied || capability) &&
	    strcmp(profile, "unconfined") != 0;
	/* The kernel makes no namespaces for anybody without privileges. */
	const bool unmade = failure.making && !denied;
	/* The first one that holds is the verdict. */
	const struct {
		bool holds;
		const char *cause;
		const char *mend;
	} table[] = {
		{ strcmp(reason, "asked for") == 0,
		    "IL_API_ISOLATION asks for it", "IL_API_ISOLATION=auto" },
		{ unmade && !f->namespaces,
		    "this kernel is built without user namespaces",
		    "a kernel with CONFIG_USER_NS" },
		{ unmade && f->allowed == 0,
		    "kernel.unprivileged_userns_clone is 0",
		    "sysctl -w kernel.unprivileged_userns_clone=1, and the "
		    "same in /etc/sysctl.d" },
		{ unmade && f->most == 0, "user.max_user_namespaces is 0",
		    "sysctl -w user.max_user_namespaces=10000, and the same in "
		    "/etc/sysctl.d" },
		{ unmade && strcmp(failure.error, "ENOSPC") == 0,
		    "user.max_user_namespaces is used up, here or where the "
		    "engine itself is contained",
		    "sysctl -w user.max_user_namespaces=10000, there" },
		{ by_profile && engines && *f->profile != '\0', engines_forbids,
		    "leave IL_API_APPARMOR empty: " APPARMOR_PROFILE
		    ", which comes with Inline, is used where it is loaded" },
		{ by_profile && engines && f->loaded, engines_forbids,
		    "systemctl restart il-sandboxd: " APPARMOR_PROFILE
		    " is loaded by now" },
		{ by_profile && engines, engines_forbids,
		    "load " APPARMOR_PROFILE ", which comes with "
		    "Inline: " LOAD_OURS " && systemctl restart il-sandboxd" },
		{ by_profile && ours, forbids,
		    "load the profile of this version: make install "
		    "&& " LOAD_OURS " && systemctl restart il-sandboxd; and "
		    "look at /etc/apparmor.d/local/" APPARMOR_PROFILE },
		{ by_profile, forbids, allow },
		{ f->restricted == 1,
		    "kernel.apparmor_restrict_unprivileged_userns is 1",
		    "leave IL_API_APPARMOR empty and load " APPARMOR_PROFILE
		    " (" LOAD_OURS "), or set that sysctl to 0" },
		{ denied && f->selinux, "SELinux enforces",
		    "look at `ausearch -m avc` for what it forbids" },
		{ *f->outside != '\0', contained,
		    "allow user namespaces and mounts in what contains this "
		    "host" },
		{ *f->runtime != '\0',
		    "it works outside of containers; SANDBOX_RUNTIME forbids "
		    "it",
		    "leave SANDBOX_RUNTIME empty, if its own isolation is not "
		    "what you want" },
		{ true,
		    "it works outside of containers: the engine, or its "
		    "default runtime, forbids it",
		    "" },
	};
	size_t i = 0;

	while (!table[i].holds)
		i++;
	(void)snprintf(verdict->cause, sizeof(verdict->cause), "%s",
	    table[i].cause);
	(void)snprintf(verdict->mend, sizeof(verdict->mend), "%s",
	    table[i].mend);
}
