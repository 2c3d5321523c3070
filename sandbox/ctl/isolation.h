/* SPDX-License-Identifier: MIT */
#ifndef ISOLATION_H
#define ISOLATION_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Why the runs of the HTTP APIs cannot have namespaces of their own on this
 * host: from the step at which a cell failed, and what the kernel says.
 */
struct isolation_facts {
	bool namespaces;     /* the kernel has user namespaces */
	int64_t allowed;     /* kernel.unprivileged_userns_clone, -1: none */
	int64_t most;	     /* user.max_user_namespaces, -1: none */
	int64_t restricted;  /* kernel.apparmor_restrict_unprivileged_userns,
				 * -1: none */
	bool apparmor;	     /* it is on */
	bool selinux;	     /* it enforces */
	bool loaded;	     /* our profile (base/apparmor.h) is */
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

/* Look at the host; tries the steps in a child. */
void isolation_look(struct isolation_facts *facts, const char *profile,
    const char *runtime);
/* reason: "asked for", or "step: ERROR" as the cell told it, with the
 * AppArmor profile that it was under, if any, ", profile NAME".  Pure. */
void isolation_judge(const struct isolation_facts *facts, const char *reason,
    struct isolation_verdict *verdict);

#endif
