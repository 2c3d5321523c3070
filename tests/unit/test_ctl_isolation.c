/* Why runs have no namespaces, from what the cell and the host say. */
#include "sandbox/ctl/isolation.h"

#include "tap.h"

/* A host that allows everything. */
static struct isolation_facts
fine(void)
{
	return (struct isolation_facts){ .namespaces = true,
		.allowed = 1,
		.most = 10000,
		.restricted = -1,
		.profile = "",
		.runtime = "" };
}

static void
judged(const struct isolation_facts *facts, const char *hindrance,
    const char *cause, const char *mend, const char *name)
{
	struct isolation_verdict verdict = { "", NULL };

	isolation_judge(facts, hindrance, &verdict);
	ok(strstr(verdict.cause, cause) != NULL, name);
	if (mend == NULL)
		ok(verdict.mend == NULL, "for which no cure is known");
	else
		ok(verdict.mend != NULL && strstr(verdict.mend, mend) != NULL,
		    "and its cure");
	note("%s: %s", hindrance, verdict.cause);
}

static void
test_namespaces(void)
{
	struct isolation_facts f = fine();

	judged(&f, "unshare: ENOSPC", "is used up",
	    "sysctl -w user.max_user_namespaces=10000", "too many");
	f.most = 0;
	judged(&f, "unshare: ENOSPC", "user.max_user_namespaces is 0",
	    "sysctl -w user.max_user_namespaces", "none at all");
	f.allowed = 0;
	judged(&f, "clone: EPERM", "kernel.unprivileged_userns_clone is 0",
	    "sysctl -w kernel.unprivileged_userns_clone=1", "Debian's switch");
	f.namespaces = false;
	judged(&f, "unshare: EINVAL", "without user namespaces",
	    "CONFIG_USER_NS", "an old kernel");
}

static void
test_mounts(void)
{
	struct isolation_facts f = fine();

	f.selinux = true;
	judged(&f, "mount: EACCES", "SELinux", "ausearch", "SELinux");
	f.apparmor = true;
	judged(&f, "mount: EACCES", "Docker's profile forbids mounts",
	    "IL_API_APPARMOR=unconfined", "docker-default");
	judged(&f, "mount: EPERM", "the engine", NULL, "not by AppArmor");
	f.profile = "mine";
	judged(&f, "mount: EACCES", "IL_API_APPARMOR forbids it", "`mount,`",
	    "a profile of the operator's");
	f.restricted = 1;
	f.profile = "unconfined";
	judged(&f, "mount: EPERM", "apparmor_restrict_unprivileged_userns",
	    "userns", "Ubuntu's switch");
	judged(&f, "unshare: EPERM", "apparmor_restrict_unprivileged_userns",
	    "userns", "which may forbid the namespaces as well");
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
	judged(&f, "unshare: EPERM", "SANDBOX_RUNTIME forbids",
	    "SANDBOX_RUNTIME", "another runtime");
	(void)snprintf(f.outside, sizeof(f.outside), "EPERM");
	judged(&f, "unshare: EPERM", "every process without privileges (EPERM)",
	    "what contains this host", "the host is contained itself");
	judged(&f, "?", "every process without", "what contains", "no step");
}

int
main(void)
{
	struct isolation_facts facts;

	test_namespaces();
	test_mounts();
	test_rest();
	isolation_look(&facts, "", "");
	ok(facts.namespaces == (access("/proc/self/ns/user", F_OK) == 0),
	    "the host can be looked at");
	note("outside: %s", facts.outside);
	return tap_done();
}
