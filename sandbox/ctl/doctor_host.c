/* SPDX-License-Identifier: MIT */
/*
 * The checks of the machine: engine, images, loop devices, nginx, disk; and why
 * runs of the HTTP APIs have no namespaces on it: this looks at the host's
 * switches, tries the first steps of a jail outside of any container, and finds
 * the one cause in a table.
 */
#include "ctl/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <libgen.h>
#include <pwd.h>
#include <regex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/process.h"
#include "base/file.h"
#include "base/text.h"
#include "protocol/frame.h"

#define TOOL_MS 15000
/* nginx's own file comes first in what it prints of its configuration. */
#define OUTPUT_MAX (1 << 20)
#define WHY 256
#define NOBODY 65532
#define NUMBER_MAX 24
#define ENGINES_PROFILE "docker-default"
#define LOAD_OURS "apparmor_parser -r /etc/apparmor.d/" APPARMOR_PROFILE
/* nginx's own, where nothing is said. */
#define CONNECTIONS_DEFAULT 512
/* Below this, the broker refuses new cells soon, */
#define SANDBOXES_LOW (INT64_C(1) << 30)
/* commits fail soon, */
#define DATABASE_LOW (INT64_C(256) << 20)
/* il-api refuses uploads soon: it leaves 256 MiB to others. */
#define FILES_LOW (INT64_C(512) << 20)

/* Run a tool, whose arguments end with a NULL; false (and why) when it cannot
 * be run or fails.  out: NULL, or what it prints. */
static bool
run_tool(struct buf *out, const char *const *argv, char why[static WHY])
{
	struct process_spec spec = {
		.argv = argv, .output_max = OUTPUT_MAX, .timeout_ms = TOOL_MS
	};
	auto_result struct process_result result = { 0 };
	struct err err;

	if (process_run(&spec, &result, &err) != 0) {
		(void)snprintf(why, WHY, "%s", err.text);
		return false;
	}
	(void)snprintf(why, WHY, "%s", process_describe(&result).text);
	if (out != NULL)
		buf_adds(out, buf_str(&result.out));
	return process_succeeded(&result);
}

#define TOOL(why, ...) \
	run_tool(NULL, (const char *const[]){ __VA_ARGS__, NULL }, why)

static bool
engine_answers(const struct config *config, char why[static WHY])
{
	return TOOL(why, config->docker_binary, "version", "--format",
	    "{{.Server.Version}}");
}

/* The kernel, the client, the engine, and a fault of some versions that loses
 * limits. */
void
doctor_engine(struct doctor *d)
{
	struct utsname host;
	bool forgets_rates;
	struct err err = { 0 };
	char why[WHY];

	if (uname(&host) == 0 && strverscmp(host.release, "5.14") < 0)
		doctor_say(d, FOUND_KERNEL_OLD, host.release);
	if (docker_cli_check(d->config->docker_binary, &forgets_rates, &err) !=
	    0)
		doctor_say(d, FOUND_ENGINE_CLIENT, err.text);
	else
		doctor_say(d,
		    engine_answers(d->config, why) ? FOUND_ENGINE_GOOD :
						     FOUND_ENGINE_BAD,
		    why);
	if (forgets_rates &&
	    (d->config->disk_rate > 0 || d->config->disk_ops > 0))
		doctor_say(d, FOUND_ENGINE_RATES, "");
}

/* doctor_engine() reports an engine that does not answer. */
static void
check_image(struct doctor *d, const char *what, const char *image,
    const char *key)
{
	const char *docker = d->config->docker_binary;
	char why[WHY];

	doctor_say(d,
	    TOOL(why, docker, "image", "inspect", "--format", "{{.Id}}",
		image) ?
		FOUND_IMAGE_GOOD :
		engine_answers(d->config, why) ? FOUND_IMAGE_MISSING :
						 FOUND_IMAGE_UNKNOWN,
	    what, image, docker, key);
}

static const char *
either(const char *told, const char *otherwise)
{
	return *told != '\0' ? told : otherwise;
}

/*
 * The images that il-sandboxd runs with, or would run with where it does not
 * run: `make run` gives it substitutes for what cannot be pulled.
 */
void
doctor_images(struct doctor *d)
{
	const struct lease_status *status = &d->facts.status;
	const char *image = either(status->image_name,
	    d->config->sandbox_image);
	const struct {
		const char *key;
		const char *list;
		const char *place;
	} lists[] = {
		{ "SANDBOX_IMAGES",
		    either(status->images, d->config->sandbox_images), "" },
		{ "IL_CHAT_IMAGES",
		    either(status->chat_images, d->config->chat_images),
		    " in chat" },
	};

	check_image(d, "image", image, "SANDBOX_IMAGE");
	for (size_t i = 0; i < 2; i++) {
		struct image_entry entry;

		for (size_t pos = 0;
		     images_next(lists[i].list, &pos, &entry);) {
			auto_free char *what = xprintf("image of Python %s%s",
			    entry.name, lists[i].place);

			if (strcmp(entry.image, image) != 0 &&
			    (i == 0 ||
				!images_have(lists[0].list, entry.image)))
				check_image(d, what, entry.image, lists[i].key);
		}
	}
}

/* Workspaces are file systems on loop devices. */
void
doctor_loop(struct doctor *d)
{
	auto_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	char why[WHY];

	doctor_say(d,
	    control >= 0			       ? FOUND_LOOP_GOOD :
		access("/dev/loop-control", F_OK) != 0 ? FOUND_LOOP_NONE :
							 FOUND_LOOP_CLOSED,
	    "");
	doctor_say(d,
	    TOOL(why, "mkfs.ext4", "-V") ? FOUND_MKFS_GOOD : FOUND_MKFS_BAD,
	    why);
}

/* nginx that root asks gives its folders to the user it would become.  That
 * must be their owner, or the nginx that runs could not write there any more.
 * The text is empty where nothing is given away; false: their owner has no
 * name. */
static bool
name_owner(char directive[static WHY], const char *conf)
{
	auto_free char *folder = NULL;
	const struct passwd *user;
	const struct group *group;
	struct stat st;

	directive[0] = '\0';
	if (conf == NULL || geteuid() != 0)
		return true;
	folder = xprintf("%.*s/nginx", (int)(strrchr(conf, '/') - conf), conf);
	if (stat(folder, &st) != 0 || st.st_uid == 0)
		return true;
	user = getpwuid(st.st_uid);
	group = getgrgid(st.st_gid);
	if (user == NULL || group == NULL)
		return false;
	(void)snprintf(directive, WHY, "user %s %s;", user->pw_name,
	    group->gr_name);
	return true;
}

/* The number in "NAME NUMBER;" where that stands outside of comments. */
static int64_t
read_setting(const char *dump, const char *name, int64_t otherwise)
{
	auto_free char *pattern = xprintf("^([^#]*[[:space:]{};])?%s"
					  "[[:space:]]+([0-9]{1,15})"
					  "[[:space:]]*;",
	    name);
	int64_t value = otherwise;
	regmatch_t found[3];
	regex_t regex;

	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NEWLINE) != 0)
		return otherwise;
	if (regexec(&regex, dump, 3, found, 0) == 0)
		value = strtoll(dump + found[2].rm_so, NULL, 10);
	regfree(&regex);
	return value;
}

/* Each connection is a file, and there are a few more. */
void
nginx_room_read(struct nginx_room *room, const char *dump, const char *lib_dir)
{
	auto_free char *ours = xprintf("\n# configuration file %s/nginx/"
				       "http.conf:\n",
	    lib_dir);

	room->connections = read_setting(dump, "worker_connections",
	    CONNECTIONS_DEFAULT);
	room->files = read_setting(dump, "worker_rlimit_nofile", 0);
	room->ours = strstr(dump, ours) != NULL;
	room->suffices = room->connections >= NGINX_CONNECTIONS_MIN &&
	    room->files > room->connections;
}

/* Does nginx take as many connections as its limits assume?  Debian's own
 * configuration has 768, which the bodies of one stranger fill. */
static void
check_nginx_room(struct doctor *d, const char *dump, const char *conf)
{
	struct nginx_room room;

	nginx_room_read(&room, dump, d->config->lib_dir);
	if (!room.ours && conf == NULL)
		doctor_say(d, FOUND_NGINX_OTHER, "");
	else if (!room.suffices)
		doctor_say(d,
		    conf != NULL ? FOUND_NGINX_OLD : FOUND_NGINX_NARROW,
		    doctor_number(room.connections).text,
		    doctor_number(room.files).text,
		    doctor_number(NGINX_CONNECTIONS_MIN).text,
		    d->config->lib_dir);
	else
		doctor_say(d, FOUND_NGINX_GOOD,
		    conf != NULL ? conf : "as it is installed",
		    doctor_number(room.connections).text);
}

/* Is nginx there?  Does it take what was generated, or else the system's own
 * configuration, and as many connections as are needed? */
void
doctor_nginx(struct doctor *d)
{
	auto_free char *generated = config_state_path(d->config, "nginx.conf");
	auto_free char *conf = realpath(generated, NULL);
	auto_buf struct buf dump = BUF_INIT(OUTPUT_MAX);
	char directive[WHY];
	char why[WHY];
	const char *const argv[] = { "nginx", "-T", "-q", "-e", "stderr", "-g",
		directive, conf == NULL ? NULL : "-c", conf, NULL };

	if (!TOOL(why, "nginx", "-v"))
		doctor_say(d, FOUND_NGINX_MISSING, why);
	else if (!name_owner(directive, conf))
		doctor_say(d, FOUND_NGINX_USER, conf);
	else if (run_tool(&dump, argv, why))
		check_nginx_room(d, buf_str(&dump), conf);
	else
		doctor_say(d,
		    conf != NULL       ? FOUND_NGINX_GENERATED :
			geteuid() == 0 ? FOUND_NGINX_BAD :
					 FOUND_NGINX_ROOT,
		    why);
}

/* Data needs space; the state folder holds sockets, often in memory. */
static void
check_space(struct doctor *d, const char *name, const char *path, int64_t low)
{
	struct statvfs fs;
	int64_t free_bytes;

	if (statvfs(path, &fs) != 0)
		return; /* the check of the folder reports it */
	free_bytes = (int64_t)(fs.f_bavail * fs.f_frsize);
	if (free_bytes >= low && fs.f_files > 0 && fs.f_favail < 10000)
		doctor_say(d, FOUND_DISK_FILES,
		    doctor_number((int64_t)fs.f_favail).text, name, path);
	else
		doctor_say(d,
		    free_bytes < low ? FOUND_DISK_LOW : FOUND_DISK_GOOD,
		    text_size(free_bytes).text, name, path,
		    text_size(low).text);
}

void
doctor_disk(struct doctor *d)
{
	const struct config *config = d->config;
	auto_free char *database = xstrdup(config->database);

	check_space(d, "the database", dirname(database), DATABASE_LOW);
	check_space(d, "the sandboxes", config->base_dir, SANDBOXES_LOW);
	check_space(d, "the files of the HTTP APIs", config->api_files,
	    FILES_LOW);
}

/* ---- isolation ---- */

/* Take the first steps of jail.py as an unprivileged process.  Returns the
 * errno. */
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

/* Take them in a child, which gives up root for it. */
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

/* A small file of the kernel's that holds this character alone is a fact. */
static const struct {
	const char *path;
	char value;
	enum isolation_host fact;
} switches[] = {
	{ "/proc/sys/kernel/unprivileged_userns_clone", '0', HOST_NOT_ALLOWED },
	{ "/proc/sys/user/max_user_namespaces", '0', HOST_NONE_AT_MOST },
	{ "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1',
	    HOST_RESTRICTED },
	{ "/sys/module/apparmor/parameters/enabled", 'Y', HOST_APPARMOR },
	{ "/sys/fs/selinux/enforce", '1', HOST_SELINUX },
};

void
isolation_measure(struct isolation_facts *facts)
{
	facts->host = 0;
	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
		auto_buf struct buf text = BUF_INIT(NUMBER_MAX);
		struct err ignored;

		(void)file_read(switches[i].path, &text, &ignored);
		if (strcspn(buf_str(&text), "\n") == 1 &&
		    *buf_str(&text) == switches[i].value)
			facts->host |= switches[i].fact;
	}
	if (access("/proc/self/ns/user", F_OK) != 0)
		facts->host |= HOST_NO_NAMESPACES;
	if (apparmor_is_loaded(APPARMOR_PROFILE))
		facts->host |= HOST_LOADED;
	try_outside(facts->outside, sizeof(facts->outside));
}

/* Facts of the step that failed, beside those of enum isolation_host. */
enum {
	ASKED_FOR = 1 << 8,
	UNMADE = 1 << 9, /* the kernel makes no namespaces for anybody without
			    privileges */
	USED_UP = 1 << 10,
	BY_PROFILE = 1 << 11, /* AppArmor's, which forbids the step */
	ENGINES = 1 << 12,    /* that is Docker's own, */
	OURS = 1 << 13,	      /* or the one that comes with us */
	CHOSEN = 1 << 14,     /* IL_TUNE_API_APPARMOR names it */
	DENIED = 1 << 15,     /* the error is that of security modules */
	CONTAINED = 1 << 16,  /* it fails outside of containers, too */
	RUNTIME = 1 << 17,
	NO_PROC = 1 << 18, /* the kernel mounts none, */
	COVERED = 1 << 19, /* as parts of the container's are covered */
	NO_OVERLAY = 1 << 20,
	MAKING = 1 << 21, /* of namespaces; else of what is done in them */
	CAPABILITY = 1 << 22,
};

#define ENGINES_FORBIDS \
	"AppArmor is on, and Docker's own profile forbids user namespaces or " \
	"mounts"
#define PROFILE_FORBIDS "AppArmor is on, and the profile @1 forbids this step"

/* The first row whose needs are found is the verdict. */
static const struct {
	unsigned int needs;
	const char *cause;
	const char *mend;
} causes[] = {
#define CAUSE(...) { __VA_ARGS__ },
#include "ctl/doctor.def"
};

/* With namespaces: do runs see each other's locks, on files of installed
 * packages?  Any other reason says why they have no /proc. */
static bool
isolation_is_of_locks(const char *reason)
{
	static const char step[] = "mount overlay ";

	return strncmp(reason, step, strlen(step)) == 0;
}

#define NAMED ", profile " /* stands before the cell's */

/* A reason, taken apart. */
struct failure {
	char step[128];
	char error[32];
	const char *profile; /* that the cell was under */
	unsigned int facts;
};

static bool
step_is(const struct failure *failure, const char *begin)
{
	return strncmp(failure->step, begin, strlen(begin)) == 0;
}

/* The profile that the cell was under: it has named it, or it must have been
 * this one. */
static const char *
find_profile(const char *reason, const struct isolation_facts *f)
{
	const char *named = strstr(reason, NAMED);

	return named != NULL		 ? named + strlen(NAMED) :
	    *f->profile != '\0'		 ? f->profile :
	    (f->host & HOST_LOADED) != 0 ? APPARMOR_PROFILE :
					   ENGINES_PROFILE;
}

static void
isolation_find(struct failure *x, const char *reason,
    const struct isolation_facts *f)
{
	bool known = sscanf(reason, "%127[^:,]: %31[^,]", x->step, x->error) ==
	    2;
	/* Security modules fail with EACCES; for a capability with EPERM, but
	 * the engine's profile and ours allow capabilities. */
	bool denied = known && strcmp(x->error, "EACCES") == 0;
	bool eperm = known && strcmp(x->error, "EPERM") == 0;
	bool making = step_is(x, "unshare") || step_is(x, "clone");
	bool engines = strcmp(x->profile, ENGINES_PROFILE) == 0;
	bool ours = strcmp(x->profile, APPARMOR_PROFILE) == 0;
	bool capability = eperm && strstr(reason, NAMED) != NULL && !engines &&
	    !ours;
	const struct {
		bool is_so;
		unsigned int fact;
	} found[] = {
		{ strcmp(reason, "asked for") == 0, ASKED_FOR },
		{ making, MAKING },
		{ making && !denied, UNMADE },
		{ strcmp(x->error, "ENOSPC") == 0, USED_UP },
		{ strcmp(x->step, "mount proc") == 0 && !denied, NO_PROC },
		{ isolation_is_of_locks(x->step) && !denied, NO_OVERLAY },
		{ eperm, COVERED },
		{ (f->host & HOST_APPARMOR) != 0 && (denied || capability) &&
			strcmp(x->profile, "unconfined") != 0,
		    BY_PROFILE },
		{ capability, CAPABILITY },
		{ engines, ENGINES },
		{ ours, OURS },
		{ *f->profile != '\0', CHOSEN },
		{ denied, DENIED },
		{ *f->outside != '\0', CONTAINED },
		{ *f->runtime != '\0', RUNTIME },
	};

	x->facts = f->host;
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
		if (found[i].is_so)
			x->facts |= found[i].fact;
}

/* The rule that an operator's profile needs for the step. */
static const char *
rule_for(const struct failure *failure)
{
	if ((failure->facts & CAPABILITY) != 0)
		return "capability sys_admin, capability sys_ptrace, "
		       "capability setpcap, capability net_admin,";
	if ((failure->facts & MAKING) != 0)
		return "userns,";
	return step_is(failure, "mount") || step_is(failure, "move") ?
	    "mount," :
	    failure->step;
}

void
isolation_judge(const struct isolation_facts *f, const char *reason,
    struct buf *cause, struct buf *mend)
{
	struct failure failure = { .profile = find_profile(reason, f) };
	size_t i = 0;

	isolation_find(&failure, reason, f);
	while ((causes[i].needs & ~failure.facts) != 0)
		i++;
	doctor_fill(cause, causes[i].cause,
	    (const char *const[FINDING_VALUES]){
		causes[i].needs == CONTAINED ? f->outside : failure.profile });
	doctor_fill(mend, causes[i].mend,
	    (const char *const[FINDING_VALUES]){ rule_for(&failure) });
}

/* The first cell of the APIs has tried it, and the broker tells what it found:
 * why there are no namespaces for each run, or what they lack, and what would
 * bring it. */
void
doctor_isolation(struct doctor *d)
{
	struct isolation_facts facts = { .profile = d->config->api_apparmor,
		.runtime = d->config->sandbox_runtime };
	auto_buf struct buf cause = BUF_INIT(VERDICT_MAX);
	auto_buf struct buf mend = BUF_INIT(VERDICT_MAX);
	const char *how = d->facts.status.isolation_reason;
	bool contained = d->facts.status.isolation == ISOLATION_CELL;

	if (!d->facts.broker)
		return; /* told by its own check */
	if (*how == '\0' && !contained) {
		doctor_say(d,
		    d->facts.status.isolation == 0 ? FOUND_ISOLATION_UNKNOWN :
						     FOUND_ISOLATION_GOOD,
		    "");
		return;
	}
	isolation_measure(&facts);
	isolation_judge(&facts, how, &cause, &mend);
	doctor_say(d,
	    contained && strcmp(d->config->api_isolation, "run") == 0 ?
		FOUND_ISOLATION_REFUSED :
		contained		   ? FOUND_ISOLATION_CONTAINER :
		isolation_is_of_locks(how) ? FOUND_ISOLATION_LOCKS :
					     FOUND_ISOLATION_NO_PROC,
	    how, buf_str(&cause), buf_str(&mend));
}
