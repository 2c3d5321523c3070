#include "isolation.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdarg.h>
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

static void __attribute__((format(printf, 3, 4)))
found(struct isolation_verdict *verdict, const char *cause, const char *mend,
    ...)
{
	va_list ap;

	(void)snprintf(verdict->cause, sizeof(verdict->cause), "%s", cause);
	va_start(ap, mend);
	(void)vsnprintf(verdict->mend, sizeof(verdict->mend), mend, ap);
	va_end(ap);
}

/* The kernel makes no namespaces for anybody without privileges. */
static bool
judge_namespaces(const struct isolation_facts *f, const struct failure *failure,
    struct isolation_verdict *verdict)
{
	if (!f->namespaces)
		found(verdict, "this kernel is built without user namespaces",
		    "a kernel with CONFIG_USER_NS");
	else if (f->allowed == 0)
		found(verdict, "kernel.unprivileged_userns_clone is 0",
		    "sysctl -w kernel.unprivileged_userns_clone=1, and the "
		    "same in /etc/sysctl.d");
	else if (f->most == 0)
		found(verdict, "user.max_user_namespaces is 0",
		    "sysctl -w user.max_user_namespaces=10000, and the same "
		    "in /etc/sysctl.d");
	else if (strcmp(failure->error, "ENOSPC") == 0)
		found(verdict,
		    "user.max_user_namespaces is used up, here or where "
		    "the engine itself is contained",
		    "sysctl -w user.max_user_namespaces=10000, there");
	else
		return false;
	return true;
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

/* Docker's own profile was in force: why, and how ours comes into force. */
static void
judge_engines_profile(const struct isolation_facts *f,
    struct isolation_verdict *verdict)
{
	found(verdict,
	    "AppArmor is on, and Docker's own profile forbids user "
	    "namespaces or mounts",
	    "load " APPARMOR_PROFILE ", which comes with Inline: " LOAD_OURS
	    " && systemctl restart il-sandboxd");
	if (*f->profile != '\0')
		(void)snprintf(verdict->mend, sizeof(verdict->mend),
		    "leave IL_API_APPARMOR empty: " APPARMOR_PROFILE
		    ", which comes with Inline, is used where it is loaded");
	else if (f->loaded)
		(void)snprintf(verdict->mend, sizeof(verdict->mend),
		    "systemctl restart il-sandboxd: " APPARMOR_PROFILE
		    " is loaded by now");
}

static const char load_again[] =
    "load the profile of this version: make install && " LOAD_OURS
    " && systemctl restart il-sandboxd; and look at "
    "/etc/apparmor.d/local/" APPARMOR_PROFILE;
#define ALLOW_IT \
	"allow `%s` in that profile, as /etc/apparmor.d/" APPARMOR_PROFILE \
	" does, or leave IL_API_APPARMOR empty to use that one"

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

/*
 * A profile forbids the step.  EACCES is what security modules say; EPERM they
 * say of capabilities, which the engine's profile and ours allow.
 */
static bool
judge_profile(const struct isolation_facts *f, const struct failure *failure,
    struct isolation_verdict *verdict)
{
	const char *profile = profile_in_force(f, failure);
	bool engines = strcmp(profile, ENGINES_PROFILE) == 0;
	bool capability = strcmp(failure->error, "EPERM") == 0 && !engines &&
	    *failure->profile != '\0' && strcmp(profile, APPARMOR_PROFILE) != 0;

	if (!f->apparmor || strcmp(profile, "unconfined") == 0 ||
	    (strcmp(failure->error, "EACCES") != 0 && !capability))
		return false;
	if (engines) {
		judge_engines_profile(f, verdict);
		return true;
	}
	if (strcmp(profile, APPARMOR_PROFILE) == 0)
		found(verdict, "", "%s", load_again);
	else
		found(verdict, "", ALLOW_IT, rule_for(failure));
	(void)snprintf(verdict->cause, sizeof(verdict->cause),
	    "AppArmor is on, and the profile %.64s forbids this step", profile);
	return true;
}

/* What forbids it to all who have no privileges. */
static bool
judge_restrictions(const struct isolation_facts *f,
    const struct failure *failure, struct isolation_verdict *verdict)
{
	if (f->restricted == 1)
		found(verdict,
		    "kernel.apparmor_restrict_unprivileged_userns is 1",
		    "leave IL_API_APPARMOR empty and load " APPARMOR_PROFILE
		    " (" LOAD_OURS "), or set that sysctl to 0");
	else if (strcmp(failure->error, "EACCES") == 0 && f->selinux)
		found(verdict, "SELinux enforces",
		    "look at `ausearch -m avc` for what it forbids");
	else
		return false;
	return true;
}

static void
judge_rest(const struct isolation_facts *f, struct isolation_verdict *verdict)
{
	if (*f->outside != '\0') {
		found(verdict, "",
		    "allow user namespaces and mounts in what contains this "
		    "host");
		(void)snprintf(verdict->cause, sizeof(verdict->cause),
		    "this host forbids it to every process without "
		    "privileges (%s); it may be contained itself",
		    f->outside);
	} else if (*f->runtime != '\0') {
		found(verdict,
		    "it works outside of containers; SANDBOX_RUNTIME forbids "
		    "it",
		    "leave SANDBOX_RUNTIME empty, if its own isolation is "
		    "not what you want");
	} else {
		found(verdict,
		    "it works outside of containers: the engine, or its "
		    "default runtime, forbids it",
		    "%s", "");
	}
}

void
isolation_judge(const struct isolation_facts *facts, const char *reason,
    struct isolation_verdict *verdict)
{
	struct failure failure;

	if (strcmp(reason, "asked for") == 0) {
		found(verdict, "IL_API_ISOLATION asks for it",
		    "IL_API_ISOLATION=auto");
		return;
	}
	failure_read(&failure, reason);
	if (failure.making && strcmp(failure.error, "EACCES") != 0 &&
	    judge_namespaces(facts, &failure, verdict))
		return;
	if (!judge_profile(facts, &failure, verdict) &&
	    !judge_restrictions(facts, &failure, verdict))
		judge_rest(facts, verdict);
}
