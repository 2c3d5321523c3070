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

#include "../base/cleanup.h"
#include "../base/text.h"

#define NOBODY 65532
#define NUMBER_MAX 24

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
	facts->apparmor = read_word("/sys/module/apparmor/parameters/enabled",
			      word, sizeof(word)) &&
	    *word == 'Y';
	try_outside(facts->outside, sizeof(facts->outside));
}

static void
found(struct isolation_verdict *verdict, const char *cause, const char *mend)
{
	(void)snprintf(verdict->cause, sizeof(verdict->cause), "%s", cause);
	verdict->mend = mend;
}

/* Namespaces could not be made. */
static bool
judge_namespaces(const struct isolation_facts *f, const char *error,
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
	else if (strcmp(error, "ENOSPC") == 0)
		found(verdict,
		    "user.max_user_namespaces is used up, here or where "
		    "the engine itself is contained",
		    "sysctl -w user.max_user_namespaces=10000, there");
	else
		return false;
	return true;
}

/* A mount was refused, or the rights that a new namespace gives.  EACCES is
 * what security modules say. */
static bool
judge_mounts(const struct isolation_facts *f, const char *error,
    struct isolation_verdict *verdict)
{
	bool module = strcmp(error, "EACCES") == 0;

	if (module && f->apparmor && *f->profile == '\0')
		found(verdict,
		    "AppArmor is on, and Docker's profile forbids mounts",
		    "IL_API_APPARMOR=unconfined, or a profile of yours that "
		    "allows mounts");
	else if (f->restricted == 1)
		found(verdict,
		    "kernel.apparmor_restrict_unprivileged_userns is 1",
		    "IL_API_APPARMOR with a profile that has `userns,` and "
		    "`mount,`, or that sysctl set to 0");
	else if (module && f->apparmor && strcmp(f->profile, "unconfined") != 0)
		found(verdict, "AppArmor is on, and IL_API_APPARMOR forbids it",
		    "allow `mount,` in that profile");
	else if (module && f->selinux)
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
		(void)snprintf(verdict->cause, sizeof(verdict->cause),
		    "this host forbids it to every process without "
		    "privileges (%s); it may be contained itself",
		    f->outside);
		verdict->mend = "allow user namespaces and mounts in what "
				"contains this host";
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
		    NULL);
	}
}

void
isolation_judge(const struct isolation_facts *facts, const char *hindrance,
    struct isolation_verdict *verdict)
{
	const char *colon = strstr(hindrance, ": ");
	const char *error = colon != NULL ? colon + 2 : "";
	bool making = strncmp(hindrance, "unshare", 7) == 0 ||
	    strncmp(hindrance, "clone", 5) == 0;

	if (strcmp(hindrance, "asked for") == 0) {
		found(verdict, "IL_API_ISOLATION asks for it",
		    "IL_API_ISOLATION=auto");
		return;
	}
	if (making && judge_namespaces(facts, error, verdict))
		return;
	if ((!making || facts->restricted == 1) &&
	    judge_mounts(facts, error, verdict))
		return;
	judge_rest(facts, verdict);
}
