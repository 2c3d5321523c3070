/* SPDX-License-Identifier: MIT */
/*
 * The programs of `ilctl run`: the rights that each has when we are root, which
 * are its user and groups, what it owns below IL_STATE_DIR, and what it sees of
 * the folders; then all of them as children (base/children.h).  Owners are
 * changed without following anything that a program could have put there.  A
 * child gives up its rights in an order in which each step is still allowed.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <mntent.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/config.h"
#include "base/fd.h"
#include "base/process.h"
#include "ctl/ctl.h"
#include "ctl/ilctl_run.h"
#include "protocol/lease.h"
#include "protocol/node_ask.h"

#define GROUPS_MAX 3
#define PORT_FREE 1024 /* from here on anybody may listen */
#define ROOT (-1)
#define DEPTH_MAX 8 /* of folders that are given away */
#define COVER_OPTIONS "mode=0755,size=1m,nr_inodes=1k"
#define BIT(number) (UINT64_C(1) << (number))
#define BACKOFF_FIRST_MS 200
#define BACKOFF_LAST_MS 5000
/* A program that ran for so long did start well. */
#define STEADY_MS 10000

/* systemd/README.md has the same table. */
static const struct {
	const char *name;
	size_t count;
	enum account_group groups[GROUPS_MAX];
} users[ACCOUNTS] = {
	[ACCOUNT_FCGI] = { "il-fcgi", 1, { ACCOUNT_GROUP_DB } },
	[ACCOUNT_API] = { "il-api", 2,
	    { ACCOUNT_GROUP_API, ACCOUNT_GROUP_NODES } },
	[ACCOUNT_WORKER] = { "il-worker", 3,
	    { ACCOUNT_GROUP_DB, ACCOUNT_GROUP_WORKER, ACCOUNT_GROUP_NODES } },
	[ACCOUNT_NODE] = { "il-node", 1, { ACCOUNT_GROUP_DB } },
	[ACCOUNT_NGINX] = { "www-data", 1, { ACCOUNT_GROUP_WEB } },
	[ACCOUNT_STANDIN] = { "il-standin", 0, { 0 } },
};

static const char *const group_names[ACCOUNT_GROUPS] = {
	[ACCOUNT_GROUP_DB] = "inline-db",
	[ACCOUNT_GROUP_WORKER] = "inline-broker-worker",
	[ACCOUNT_GROUP_API] = "inline-broker-api",
	[ACCOUNT_GROUP_WEB] = "inline-web",
	[ACCOUNT_GROUP_NODES] = "inline-nodes",
};

/* Capabilities that the broker keeps as root, for its containers' files and
 * devices.  No program here needs the others (modules, the network, tracing,
 * raw memory, ...). */
static const uint64_t root_keeps = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) |
    BIT(CAP_FOWNER) | BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_SETGID) |
    BIT(CAP_SETUID) | BIT(CAP_MKNOD) | BIT(CAP_SYS_ADMIN) | BIT(CAP_SYS_NICE) |
    BIT(CAP_SYS_RESOURCE);

/* A user or group of that name on the host, or a fixed number; never root. */
void
account_find(struct run *run)
{
	run->separate = geteuid() == 0;
	for (size_t i = 0; i < ACCOUNTS; i++) {
		const struct passwd *user = getpwnam(users[i].name);

		run->uids[i] = (uid_t)(ACCOUNT_FIRST + i);
		run->gids[i] = (gid_t)(ACCOUNT_FIRST + i);
		if (user != NULL && user->pw_uid != 0)
			run->uids[i] = user->pw_uid;
		if (user != NULL && user->pw_gid != 0)
			run->gids[i] = user->pw_gid;
	}
	for (size_t i = ACCOUNTS; i < ACCOUNT_GROUPS; i++) {
		const struct group *group = getgrnam(group_names[i]);

		run->gids[i] = group != NULL ? group->gr_gid :
					       (gid_t)(ACCOUNT_FIRST + i);
	}
}

/* ---- owners of folders and files ---- */

/* Folders, as inline.tmpfiles has them; the stand-in's is here alone. */
static const struct {
	const char *name;
	int user;  /* an account, or ROOT */
	int group; /* its own or another one's, or ROOT */
	mode_t mode;
} places[] = {
	{ "broker", ROOT, ROOT, 0755 },
	{ "broker/worker", ROOT, ACCOUNT_GROUP_WORKER, 02710 },
	{ "broker/api", ROOT, ACCOUNT_GROUP_API, 02710 },
	{ "broker/ctl", ROOT, ROOT, 0700 },
	{ "front", ACCOUNT_FCGI, ACCOUNT_API, 02750 },
	{ "answers", ACCOUNT_FCGI, ACCOUNT_GROUP_DB, 02750 },
	{ "cancels", ACCOUNT_FCGI, ACCOUNT_GROUP_DB, 02770 },
	{ "worker", ACCOUNT_WORKER, ACCOUNT_WORKER, 0755 },
	{ "sessions", ACCOUNT_API, ACCOUNT_API, 0700 },
	/* nginx makes its socket for il-api here, which nobody else could. */
	{ "nodes", ACCOUNT_NGINX, ACCOUNT_GROUP_NODES, 0750 },
	{ "standin", ACCOUNT_STANDIN, ACCOUNT_STANDIN, 0700 },
	{ "nginx", ACCOUNT_NGINX, ACCOUNT_NGINX, 0700 },
	/* This one is there before il-sandboxd, which counts what is written
	 * there. */
	{ "nginx/body", ACCOUNT_NGINX, ACCOUNT_NGINX, 0700 },
	/* IL_API_FILES, wherever that is. */
	{ NULL, ACCOUNT_API, ACCOUNT_API, 0700 },
};

#define PLACES (sizeof(places) / sizeof(places[0]))

/* Give away all entries of a folder, through its descriptor, that are its old
 * owner's.  A file with more links than one stays: it may be another's. */
static int
give_all(int folder, uid_t from, uid_t uid, gid_t gid, int depth)
{
	auto_dir DIR *dir = fdopendir(dup(folder));
	const struct dirent *e;
	int rc = dir != NULL ? 0 : -1;

	while (rc == 0 && (e = readdir(dir)) != NULL) {
		auto_close int below = -1;
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		rc = fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW);
		if (rc != 0 || st.st_uid != from ||
		    (!S_ISDIR(st.st_mode) && st.st_nlink != 1))
			continue;
		if (S_ISDIR(st.st_mode)) {
			below = openat(folder, e->d_name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			rc = below < 0 || depth >= DEPTH_MAX ?
			    -1 :
			    give_all(below, from, uid, gid, depth + 1);
		}
		if (rc == 0)
			rc = fchownat(folder, e->d_name, uid, gid,
			    AT_SYMLINK_NOFOLLOW);
	}
	return rc;
}

/* Make it if it is missing, and as root give it away with all that is in it.
 * The folder comes last: if this is broken off, the next try begins again. */
static int
make_folder(const struct run *run, const char *path, int user, int group,
    mode_t mode, struct err *err)
{
	uid_t uid = user == ROOT ? 0 : run->uids[user];
	gid_t gid = group == ROOT ? 0 : run->gids[group];
	auto_close int fd = -1;
	struct stat st;

	if (fd_make_dirs(path, mode & 0750, err) != 0)
		return -1;
	if (!run->separate)
		return 0;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		return err_system(err, "%s", path);
	if (st.st_uid != uid && uid != 0 &&
	    give_all(fd, st.st_uid, uid, gid, 0) != 0)
		return err_system(err, "change the owner in %s", path);
	if (fchown(fd, uid, gid) != 0 || fchmod(fd, mode) != 0)
		return err_system(err, "change the owner of %s", path);
	return 0;
}

/* Files that are there when the operator names a folder outside of ours may be
 * anybody's, and must not be given to il-api.  lost+found is a new file
 * system's. */
static int
refuse_others_files(const struct run *run, const char *path, struct err *err)
{
	auto_free char *ours = config_state_path(run->config, "files");
	auto_dir DIR *dir = opendir(path);
	struct stat st;

	if (!run->separate || dir == NULL || strcmp(path, ours) == 0 ||
	    fstat(dirfd(dir), &st) != 0 || st.st_uid == run->uids[ACCOUNT_API])
		return 0;
	for (const struct dirent *e = readdir(dir); e != NULL;
	     e = readdir(dir)) {
		if (strcmp(e->d_name, ".") != 0 &&
		    strcmp(e->d_name, "..") != 0 &&
		    strcmp(e->d_name, "lost+found") != 0)
			return err_set(err, ERR_CONFIG,
			    "IL_API_FILES: %s belongs to another user and "
			    "holds %s; all in it would be il-api's: name an "
			    "empty folder",
			    path, e->d_name);
	}
	return 0;
}

/* The table has each folder before those in it. */
int
estate_prepare(const struct run *run, struct err *err)
{
	const struct config *config = run->config;

	if (run->separate && chmod(config->state_dir, 0755) != 0)
		return err_system(err, "%s", config->state_dir);
	for (size_t i = 0; i < PLACES; i++) {
		auto_free char *path = places[i].name == NULL ?
		    xstrdup(config->api_files) :
		    config_state_path(config, places[i].name);

		if (places[i].name == NULL &&
		    refuse_others_files(run, path, err) != 0)
			return -1;
		if (make_folder(run, path, places[i].user, places[i].group,
			places[i].mode, err) != 0)
			return -1;
	}
	/* Where people arrive, the sandboxes are il-node's; il-sandboxd may
	 * pass by owners. */
	return *config->nodes == '\0' ?
	    0 :
	    make_folder(run, config->base_dir, ACCOUNT_NODE, ACCOUNT_NODE, 0700,
		err);
}

/* A secret that its group, or everybody, may reach and read stays as it is:
 * Kubernetes has links on a read-only file system.  Returns 1 then.  0: it is
 * to be given; -1: it cannot be given, and the group may not read it. */
static int
is_readable(const char *path, gid_t gid, struct err *err)
{
	auto_free char *copy = xstrdup(path);
	struct stat st;
	struct stat link;

	if (stat(dirname(copy), &st) != 0 || (st.st_mode & S_IXOTH) == 0 ||
	    lstat(path, &link) != 0 || stat(path, &st) != 0)
		return 0;
	if ((st.st_mode & S_IROTH) != 0 ||
	    ((st.st_mode & S_IRGRP) != 0 && st.st_gid == gid))
		return 1;
	if (!S_ISLNK(link.st_mode) &&
	    (access(path, W_OK) == 0 || errno != EROFS))
		return 0;
	return err_set(err, ERR_CONFIG,
	    "%s: il-api may not read it: give it the mode 0444, or 0440 and "
	    "the group %lu",
	    path, (unsigned long)gid);
}

/* Give away a file, if it is there.  The operator may have put it elsewhere: a
 * folder that root alone may enter is opened to the file's group, to pass and
 * not to list. */
static int
give_file(const char *path, uid_t uid, gid_t gid, mode_t mode, struct err *err)
{
	auto_free char *copy = xstrdup(path);
	const char *folder = dirname(copy);
	auto_close int fd = open(folder,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_system(err, "%s", folder);
	if ((st.st_mode & S_IXOTH) == 0 && st.st_uid == 0 && st.st_gid == 0 &&
	    (fchown(fd, (uid_t)-1, gid) != 0 ||
		fchmod(fd, (st.st_mode & 07700) | S_IXGRP) != 0))
		return err_system(err, "change the group of %s", folder);
	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : err_system(err, "%s", path);
	if (S_ISLNK(st.st_mode) || st.st_nlink != 1)
		return err_set(err, ERR_CONFIG, "%s: is a link", path);
	if (lchown(path, uid, gid) != 0 || chmod(path, mode) != 0)
		return err_system(err, "change the owner of %s", path);
	return 0;
}

/* Files in the state folder, and those that the operator has put elsewhere. */
int
estate_share(const struct run *run, struct err *err)
{
	const struct config *config = run->config;
	const char *state = config->state_dir;
	const char *database = config->database;
	const gid_t db = run->gids[ACCOUNT_GROUP_DB];
	const gid_t api = run->gids[ACCOUNT_API];
	auto_free char *wake = config_state_path(config, "wake");
	const struct {
		const char *path; /* "": there is none */
		const char *more;
		uid_t uid;
		gid_t gid;
		mode_t mode;
		bool secret; /* of the operator's */
	} files[] = {
		{ state, "/wake", run->uids[ACCOUNT_WORKER], db, 0660, false },
		{ state, "/nginx.conf", 0, run->gids[ACCOUNT_NGINX], 0640,
		    false },
		{ state, "/commands.json", 0, run->gids[ACCOUNT_STANDIN], 0640,
		    false },
		{ state, "/standin.key", run->uids[ACCOUNT_STANDIN],
		    run->gids[ACCOUNT_STANDIN], 0600, false },
		{ database, "", 0, db, 0660, false },
		{ database, "-wal", 0, db, 0660, false },
		{ database, "-shm", 0, db, 0660, false },
		{ database, "-turn", 0, db, 0660, false },
		{ config->api_tokens_file, "", 0, api, 0640, true },
		{ config->nodes_key_file, "", 0, api, 0640, true },
		{ config->librechat_keys_file, "", 0, api, 0640, true },
	};

	if (mkfifo(wake, 0660) != 0)
		return err_system(err, "make %s", wake);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		auto_free char *path = xprintf("%s%s", files[i].path,
		    files[i].more);
		int stays = *path == '\0' ? 1 :
		    files[i].secret	  ? is_readable(path, api, err) :
					    0;

		if (stays < 0 ||
		    (stays == 0 &&
			give_file(path, files[i].uid, files[i].gid,
			    files[i].mode, err) != 0))
			return -1;
	}
	return 0;
}

/* ---- the view of the folders ---- */

/* The first folder on the way that others may not pass; NULL: there is none. */
static char *
barrier_of(const char *path)
{
	auto_free char *way = xstrdup(path);
	struct stat st;

	for (char *slash = strchr(way + 1, '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (stat(way, &st) == 0 && (st.st_mode & S_IXOTH) == 0)
			return xstrdup(way);
		*slash = '/';
	}
	return NULL;
}

/* Mounts of containers: a copy would keep their devices in use when they are
 * long gone. */
static int
leave_containers(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *m;

	if (mounts == NULL)
		return -1;
	while ((m = getmntent(mounts)) != NULL)
		if (strcmp(m->mnt_dir, "/") != 0 &&
		    (strcmp(m->mnt_type, "overlay") == 0 ||
			strcmp(m->mnt_type, "nsfs") == 0 ||
			strncmp(m->mnt_fsname, "/dev/loop", 9) == 0))
			(void)umount2(m->mnt_dir, MNT_DETACH | UMOUNT_NOFOLLOW);
	(void)endmntent(mounts);
	return 0;
}

/* In the new namespace, copy all trees before anything is covered, then cover,
 * then show.  False: errno says why. */
static bool
view_build(const char *const *paths, size_t count)
{
	int trees[VIEW_PATHS_MAX];
	struct err err;
	bool good = mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
	    leave_containers() == 0;

	for (size_t i = 0; i < count; i++) {
		trees[i] = !good ? -1 :
				   open_tree(AT_FDCWD, paths[i],
				       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
					   AT_RECURSIVE | AT_SYMLINK_NOFOLLOW);
		good = trees[i] >= 0;
	}
	for (size_t i = 0; good && i < count; i++) {
		auto_free char *barrier = barrier_of(paths[i]);

		/* one that was covered for another path is none any more */
		good = barrier == NULL ||
		    mount("tmpfs", barrier, "tmpfs", MS_NOSUID | MS_NODEV,
			COVER_OPTIONS) == 0;
	}
	for (size_t i = 0; i < count; i++) {
		good = good && fd_make_dirs(paths[i], 0755, &err) == 0 &&
		    move_mount(trees[i], "", AT_FDCWD, paths[i],
			MOVE_MOUNT_F_EMPTY_PATH) == 0;
		cleanup_close(&trees[i]);
	}
	return good;
}

/* There is nothing to do where every path can be passed. */
int
view_open(int *fd, const char *const *paths, size_t count, struct err *err)
{
	auto_close int home = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	auto_close int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_free char *barrier = NULL;
	struct err why;
	mode_t mask;

	*fd = -1;
	assert(count <= VIEW_PATHS_MAX);
	for (size_t i = 0; i < count && barrier == NULL; i++)
		barrier = barrier_of(paths[i]);
	if (barrier == NULL)
		return 0;
	mask = umask(022); /* others may pass folders that are made */
	if (home >= 0 && here >= 0 && unshare(CLONE_NEWNS) == 0) {
		if (view_build(paths, count))
			*fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
		/* The new one lives by its descriptor; we go back. */
		if (setns(home, CLONE_NEWNS) != 0 || fchdir(here) != 0)
			cleanup_close(fd);
	}
	(void)err_system(&why, "a view of the folders");
	(void)umask(mask);
	if (*fd >= 0)
		return 0;
	return err_set(err, ERR_CONFIG,
	    "%s: other users may not pass it, and no namespace of mounts is "
	    "to be had (%s): chmod o+x, or another place for the clone",
	    barrier, why.text);
}

/* ---- from fork to exec ---- */

static void
program_remove(const struct config *config, const char *name)
{
	auto_free char *path = config_state_path(config, name);

	if (unlink(path) != 0 && errno != ENOENT)
		log_warn("%s: %m", path);
}

/* One capability outlives the change of the user, as permitted.  It is made to
 * outlive exec, too; no other does. */
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
drop_identity(const struct run *run, enum account account, bool low_ports)
{
	gid_t groups[GROUPS_MAX];
	gid_t gid = run->gids[account];
	uid_t uid = run->uids[account];

	for (size_t i = 0; i < users[account].count; i++)
		groups[i] = run->gids[users[account].groups[i]];
	if ((low_ports && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) ||
	    setgroups(users[account].count, groups) != 0 ||
	    setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0 ||
	    (low_ports && keep_low_ports() != 0))
		return -1;
	/* as a unit's: nothing of root's is read */
	(void)setenv("HOME", "/nonexistent", 1);
	return chdir("/");
}

/* Become that user for good, in a child before exec: with no capability, none
 * that could be had, no other group and no way to new privileges.  nginx keeps
 * the capability of opening a port below 1024.  With ACCOUNTS we stay who we
 * are, with the capabilities of root_keeps and no way to new privileges.
 * Descriptors from first_fd on are closed at exec.  -1: errno says why.
 *
 * Bounds go while we still may drop them, the identity next, new privileges
 * last. */
static int
account_assume(const struct run *run, enum account account, int first_fd)
{
	bool low_ports = account == ACCOUNT_NGINX &&
	    run->config->http_port < PORT_FREE;
	uint64_t kept = account == ACCOUNTS ? root_keeps :
	    low_ports			    ? BIT(CAP_NET_BIND_SERVICE) :
					      0;

	/* An ordinary user may not drop bounds, and has none to use.  The
	 * kernel may know more of them than our headers: it says where they
	 * end. */
	for (int i = 0;
	     run->separate && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if ((kept & BIT(i)) == 0 &&
		    prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0)
			return -1;
	if (run->separate && account != ACCOUNTS &&
	    drop_identity(run, account, low_ports) != 0)
		return -1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	/* Linux 5.11; ours are all close-on-exec anyway. */
	(void)syscall(SYS_close_range, (unsigned int)first_fd, ~0U,
	    CLOSE_RANGE_CLOEXEC);
	return 0;
}

/* Hand over descriptors from 3 on, and say so in the environment, as
 * sd_listen_fds(3) reads it.  All are moved out of the way first. */
static void
program_hand_over(const struct program *program)
{
	int moved[CHILD_FDS];
	char text[24];

	for (int i = 0; i < program->fd_count; i++)
		moved[i] = fcntl(program->fds[i], F_DUPFD_CLOEXEC,
		    3 + CHILD_FDS);
	for (int i = 0; i < program->fd_count; i++)
		(void)dup2(moved[i], 3 + i);
	if (program->fd_count == 0 || program->account == ACCOUNT_STANDIN)
		return;
	(void)snprintf(text, sizeof(text), "%ld", (long)getpid());
	(void)setenv("LISTEN_PID", text, 1);
	(void)snprintf(text, sizeof(text), "%d", program->fd_count);
	(void)setenv("LISTEN_FDS", text, 1);
}

/* Become the program of that index, in a new process.  nginx neither removes a
 * socket that it left when it was killed, nor starts beside it. */
static void
program_become(void *arg, size_t index, pid_t parent)
{
	const struct run *run = arg;
	const struct program *program = &run->programs[index];
	bool has_view = program->account != ACCOUNTS && run->view_fd >= 0;
	/* The signal that it gets when we die.  A killed nginx would leave its
	 * workers behind; the others leave nothing. */
	int death = program->account == ACCOUNT_NGINX ? SIGTERM : SIGKILL;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;
	bool inside;

	if (program->account == ACCOUNT_NGINX)
		program_remove(run->config, NODES_SOCKET);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)setsid(); /* and a process group */
	/* Our programs come before what people's code computes: endless loops
	 * delay an answer less (tests/bench/TRIED.md). */
	process_come_first();
	process_take_short_slices();
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	/* before a descriptor that is handed over takes its number */
	inside = !has_view || setns(run->view_fd, CLONE_NEWNS) == 0;
	if (inside)
		program_hand_over(program);
	if (!inside ||
	    account_assume(run, program->account, 3 + program->fd_count) != 0) {
		log_err("%s: to give up rights: %m", program->name);
		_exit(CHILD_NOT_STARTED);
	}
	/* The bot's password, which no program but ilctl needs. */
	(void)unsetenv("DISCORD_TOKEN");
	/* A change of the user takes the signal away: it comes last. */
	if (prctl(PR_SET_PDEATHSIG, death) != 0 || getppid() != parent ||
	    null < 0)
		_exit(CHILD_NOT_STARTED);
	run_exec(run, program);
	log_err("%s: %m", program->name);
	_exit(CHILD_NOT_STARTED);
}

/* ---- ready ---- */

/* Files in the state folder that appear when the programs accept requests. */
static const char *const signs[] = { SOCKET_BROKER_WORKER, SOCKET_BROKER_API,
	SOCKET_BROKER_CTL, "fcgi.sock", "api.sock", "run.sock", "files.sock",
	"session.sock", "connect.sock", "mcp.sock", "front/jobs",
	"nginx/nginx.pid", "wake", NODES_SOCKET, "node.sock" };

#define FILES (sizeof(signs) / sizeof(signs[0]))
#define SIGNS (FILES - 3) /* the last ones tell nothing, and are removed, too */

void
supervise_clear(const struct config *config)
{
	for (size_t i = 0; i < FILES; i++)
		program_remove(config, signs[i]);
}

/* The end of a start: where to go now. */
static void
supervise_announce(const struct run *run)
{
	long port = (long)run->config->http_port;

	printf("\nInline is ready.  Ctrl-C ends everything.\n\n");
	if (run->standin.port != 0)
		printf("  chat page     http://127.0.0.1:%ld/\n", port);
	printf("  interactions  http://127.0.0.1:%ld/interactions\n", port);
	printf("  HTTP APIs     http://127.0.0.1:%ld/docs\n", port);
	printf("  health        http://127.0.0.1:%ld/health\n", port);
	printf("  state         %s\n\n", run->config->state_dir);
	if (run->standin.port != 0)
		printf("DISCORD_PUBLIC_KEY is not set: a stand-in on this "
		       "machine plays Discord.\nOpen the chat page and type "
		       "/il create, then /il py print(1).\n\n");
	(void)fflush(stdout);
}

/* The first time that all accept requests, it is announced. */
static void
supervise_check_ready(void *arg)
{
	struct run *run = arg;
	char events[4096];

	while (read(run->children.watched, events, sizeof(events)) > 0)
		;
	for (size_t i = 0; i < SIGNS; i++) {
		auto_free char *path = config_state_path(run->config, signs[i]);

		if (access(path, F_OK) != 0)
			return;
	}
	(void)close(run->children.watched);
	run->children.watched = 0;
	supervise_announce(run);
}

/* Watch the folders in which the signs are made. */
static int
supervise_watch(const struct run *run, struct err *err)
{
	auto_close int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	for (size_t i = 0; i < SIGNS; i++) {
		auto_free char *path = config_state_path(run->config, signs[i]);

		*strrchr(path, '/') = '\0';
		if (inotify_add_watch(fd, path, IN_CREATE | IN_MOVED_TO) < 0)
			return err_system(err, "inotify");
	}
	return steal_fd(&fd);
}

/* ---- the children ---- */

/* A program that cannot run as things are ends everything, as it would end
 * again, however often it is tried. */
static void
supervise_on_end(void *arg, size_t index, const siginfo_t *end)
{
	struct run *run = arg;
	int code = end->si_code == CLD_EXITED ? end->si_status : 0;

	if (run->children.asked > 0 ||
	    (code != CTL_USAGE && code != CTL_CONFIG &&
		code != CHILD_NOT_STARTED))
		return;
	log_err("%s cannot run as things are: everything ends",
	    run->programs[index].name);
	run->exit_code = code == CTL_USAGE ? CTL_USAGE : CTL_CONFIG;
	children_end(&run->children);
}

/* The first signal asks, the second hurries, the third kills. */
static void
supervise_on_signal(void *arg)
{
	const struct run *run = arg;
	const struct child *of = run->children.of;

	if (run->children.asked > 0) {
		log_info("hurrying");
		return;
	}
	log_info("ending: what runs has %lld s; a second signal does not wait",
	    (long long)(run->config->stop_ms / 1000));
	/* The stand-in ends the event streams of its pages, which never end by
	 * themselves, so that nginx does not wait for them. */
	for (size_t i = 0; i < run->children.count; i++)
		if (of[i].stage == STAGE_STANDIN && of[i].pid != 0)
			(void)kill(of[i].pid, SIGWINCH);
}

/* Sockets that are ours wait in the kernel from before the first start, so the
 * order of the starts does not matter to those who connect. */
int
supervise(struct run *run, struct err *err)
{
	/* nginx closes requests that take longer than IL_STOP_SECONDS.  A
	 * worker's run has the same time; then the worker reports it as
	 * interrupted, as there may be no next start.  The broker waits for
	 * starts that are under way, and for the engine to remove its
	 * containers.  The second signal does not kill it: without it the cells
	 * would have to find out that they are alone. */
	const struct children_stage stages[STAGE_COUNT] = {
		[STAGE_DRAIN] = { 15000 + run->config->stop_ms, 1 },
		[STAGE_FRONT] = { 3000, 1 },
		[STAGE_STANDIN] = { 2000, 1 },
		[STAGE_BROKER] = { 25000 + run->config->start_ms, 2 },
	};
	run->children = (struct children){
		.of = run->children.of,
		.count = run->children.count,
		.stages = stages,
		.stage_count = STAGE_COUNT,
		.first_ms = BACKOFF_FIRST_MS,
		.most_ms = BACKOFF_LAST_MS,
		.steady_ms = STEADY_MS,
		.again_ms = BACKOFF_FIRST_MS,
		.arg = run,
		.become = program_become,
		.ended = supervise_on_end,
		.tick = supervise_check_ready,
		.watched = supervise_watch(run, err),
		.signalled = supervise_on_signal,
	};
	if (run->children.watched < 0 || children_run(&run->children, err) != 0)
		return -1;
	return run->exit_code;
}
