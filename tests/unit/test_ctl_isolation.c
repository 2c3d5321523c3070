/* SPDX-License-Identifier: MIT */
/* Why runs have no namespaces, from what the cell and the host say. */
#include "ctl/doctor.h"

#include "base/basics.h"

#include "tap.h"

/* A host that allows everything. */
static struct isolation_facts
fine(void)
{
	return (struct isolation_facts){ .profile = "", .runtime = "" };
}

static void
judged(const struct isolation_facts *facts, const char *reason,
    const char *cause, const char *mend, const char *name)
{
	auto_buf struct buf why = BUF_INIT(VERDICT_MAX);
	auto_buf struct buf cure = BUF_INIT(VERDICT_MAX);

	isolation_judge(facts, reason, &why, &cure);
	ok(strstr(buf_str(&why), cause) != NULL, name);
	if (mend == NULL)
		ok(cure.len == 0, "for which no cure is known");
	else
		ok(strstr(buf_str(&cure), mend) != NULL, "and its cure");
	note("%s: %s; %s", reason, buf_str(&why), buf_str(&cure));
}

static void
test_namespaces(void)
{
	struct isolation_facts f = fine();

	judged(&f, "unshare: ENOSPC", "is used up",
	    "sysctl -w user.max_user_namespaces=10000", "too many");
	f.host |= HOST_NONE_AT_MOST;
	judged(&f, "unshare: ENOSPC", "user.max_user_namespaces is 0",
	    "sysctl -w user.max_user_namespaces", "none at all");
	f.host |= HOST_NOT_ALLOWED;
	judged(&f, "clone: EPERM", "kernel.unprivileged_userns_clone is 0",
	    "sysctl -w kernel.unprivileged_userns_clone=1", "Debian's switch");
	f.host |= HOST_NO_NAMESPACES;
	judged(&f, "unshare: EINVAL", "without user namespaces",
	    "CONFIG_USER_NS", "an old kernel");
}

/* With namespaces, and without a /proc for the runs. */
static void
test_proc(void)
{
	struct isolation_facts f = fine();

	judged(&f, "mount proc: EPERM", "parts that are covered",
	    "systempaths=unconfined", "the engine masks /proc");
	judged(&f, "mount proc: EINVAL", "no /proc of processes alone",
	    "Linux 5.14", "an older kernel");
	judged(&f, "mount overlay /snekbox/x: EPERM", "mounts no overlay",
	    "CONFIG_OVERLAY_FS", "and one whose runs see each other's locks");
	f.host |= HOST_APPARMOR;
	judged(&f, "mount overlay /snekbox/x: EACCES, profile mine",
	    "the profile mine", "mount,",
	    "which AppArmor can bring about, too");
	judged(&f, "move proc to /proc: EACCES, profile mine",
	    "the profile mine", "mount,", "AppArmor forbids it its place");
}

/* Debian 12 stops at the first mount, Debian 13 at the namespaces. */
static void
test_engines_profile(void)
{
	struct isolation_facts f = fine();

	f.host |= HOST_APPARMOR;
	judged(&f, "mount private /: EACCES, profile docker-default",
	    "Docker's own profile forbids", "apparmor_parser -r",
	    "docker-default, at a mount");
	judged(&f, "unshare: EACCES, profile docker-default",
	    "Docker's own profile forbids", "apparmor_parser -r",
	    "docker-default, at the namespaces");
	judged(&f, "unshare: EACCES", "Docker's own profile forbids",
	    "apparmor_parser -r", "a cell that does not know its profile");
	f.host |= HOST_LOADED;
	judged(&f, "unshare: EACCES, profile docker-default",
	    "Docker's own profile forbids", "systemctl restart il-sandboxd",
	    "ours was loaded after the cell was started");
	f.profile = "docker-default";
	judged(&f, "unshare: EACCES, profile docker-default",
	    "Docker's own profile forbids", "leave IL_TUNE_API_APPARMOR empty",
	    "the operator asked for docker-default");
}

static void
test_profiles(void)
{
	struct isolation_facts f = fine();

	f.host |= HOST_APPARMOR;
	f.profile = "mine";
	judged(&f, "unshare: EACCES, profile mine", "the profile mine forbids",
	    "allow `userns,`", "a profile of the operator's: namespaces");
	judged(&f, "mount move to /proc: EACCES, profile mine",
	    "the profile mine forbids", "allow `mount,`", "a mount");
	judged(&f, "open /tmp/cpuinfo: EACCES, profile mine",
	    "the profile mine forbids", "allow `open /tmp/cpuinfo`",
	    "neither: mounts are not what is to be allowed");
	judged(&f, "capset: EACCES, profile mine", "the profile mine forbids",
	    "allow `capset`", "nor for a capability");
	judged(&f, "mount private /: EPERM, profile mine",
	    "the profile mine forbids", "allow `capability sys_admin",
	    "a capability, of which EPERM is said");
	judged(&f, "unshare: EPERM, profile mine", "the profile mine forbids",
	    "allow `capability sys_admin",
	    "mount namespaces take a capability, too");
	judged(&f, "unshare: EPERM, profile inline-api", "the engine", NULL,
	    "ours has those that are needed");
	judged(&f, "mount private /: EPERM, profile docker-default",
	    "the engine", NULL, "docker-default has all of them");
	judged(&f, "mount private /: EPERM", "the engine", NULL,
	    "not by AppArmor");
	f.profile = "";
	f.host |= HOST_LOADED;
	judged(&f, "mount /tmp: EACCES, profile inline-api",
	    "the profile inline-api forbids", "make install",
	    "ours of another version");
	f.profile = "unconfined";
	f.host |= HOST_RESTRICTED;
	judged(&f, "mount private /: EPERM",
	    "apparmor_restrict_unprivileged_userns",
	    "IL_TUNE_API_APPARMOR empty", "Ubuntu's switch");
	judged(&f, "unshare: EPERM", "apparmor_restrict_unprivileged_userns",
	    "IL_TUNE_API_APPARMOR empty",
	    "which may forbid the namespaces as well");
	judged(&f, "unshare: EACCES", "apparmor_restrict_unprivileged_userns",
	    "IL_TUNE_API_APPARMOR empty", "by either error");
}

static void
test_selinux(void)
{
	struct isolation_facts f = fine();

	f.host |= HOST_SELINUX;
	judged(&f, "mount private /: EACCES", "SELinux", "ausearch",
	    "SELinux at a mount");
	judged(&f, "unshare: EACCES", "SELinux", "ausearch",
	    "SELinux at the namespaces");
}

static void
test_rest(void)
{
	struct isolation_facts f = fine();

	judged(&f, "asked for", "IL_API_ISOLATION", "IL_API_ISOLATION=auto",
	    "the operator wanted it");
	judged(&f, "unshare: EPERM", "the engine, or its default runtime", NULL,
	    "works outside, not inside");
	f.runtime = "runsc";
	judged(&f, "unshare: EPERM", "IL_TUNE_RUNTIME forbids",
	    "IL_TUNE_RUNTIME", "another runtime");
	(void)snprintf(f.outside, sizeof(f.outside), "EPERM");
	judged(&f, "unshare: EPERM", "every process without privileges (EPERM)",
	    "what contains this host", "the host is contained itself");
	judged(&f, "?", "every process without", "what contains", "no step");
}

int
main(void)
{
	struct isolation_facts facts = fine();

	test_namespaces();
	test_proc();
	test_engines_profile();
	test_profiles();
	test_selinux();
	test_rest();
	isolation_measure(&facts);
	ok(((facts.host & HOST_NO_NAMESPACES) == 0) ==
		(access("/proc/self/ns/user", F_OK) == 0),
	    "the host can be looked at");
	note("outside: %s", facts.outside);
	return tap_done();
}
