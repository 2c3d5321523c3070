/* SPDX-License-Identifier: MIT */
#ifndef ISOLATION_H
#define ISOLATION_H

#include <stdbool.h>

/*
 * Why the runs of the HTTP APIs cannot have namespaces of their own on this
 * host, or lack something in them: from the step at which a cell failed, and
 * what the kernel says.
 */
enum isolation_host {
	HOST_NO_NAMESPACES = 1 << 0, /* the kernel has no user namespaces */
	HOST_NOT_ALLOWED = 1 << 1,   /* kernel.unprivileged_userns_clone is 0 */
	HOST_NONE_AT_MOST = 1 << 2,  /* user.max_user_namespaces is 0 */
	/* kernel.apparmor_restrict_unprivileged_userns is 1 */
	HOST_RESTRICTED = 1 << 3,
	HOST_APPARMOR = 1 << 4, /* it is on */
	HOST_SELINUX = 1 << 5,	/* it enforces */
	HOST_LOADED = 1 << 6,	/* our profile (base/apparmor.h) is */
};

struct isolation_facts {
	unsigned int host;   /* enum isolation_host, or-ed */
	const char *profile; /* IL_API_APPARMOR */
	const char *runtime; /* SANDBOX_RUNTIME */
	char outside[64];    /* how the same steps fail for a process without
				 * privileges outside of containers; "": they
				 * do not */
};

struct isolation_verdict {
	char cause[256];
	char mend[320]; /* a command or a setting; "": none is known */
};

/* With namespaces: do runs see each other's locks, on files of installed
 * packages?  Else such a reason says why they have no /proc.  Pure. */
bool isolation_is_of_locks(const char *reason);
/* Look at the host; tries the steps in a child. */
void isolation_look(struct isolation_facts *facts, const char *profile,
    const char *runtime);
/* reason: "asked for", or "step: ERROR" as the cell told it, with the
 * AppArmor profile that it was under, if any, ", profile NAME".  Pure. */
void isolation_judge(const struct isolation_facts *facts, const char *reason,
    struct isolation_verdict *verdict);

#endif
