#include "wake.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/err.h"

#define MODE 0660 /* il-fcgi writes as another user of the same group */

int
wake_open(const char *path, struct err *err)
{
	struct stat st;
	int fd;

	if (mkfifo(path, MODE) == 0)
		(void)chmod(path, MODE); /* whatever the umask is */
	else if (errno != EEXIST)
		return err_system(err, "make %s", path);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_system(err, "open %s", path);
	if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		return fd;
	(void)close(fd);
	return err_set(err, ERR_CONFIG, "%s is not a FIFO", path);
}

void
wake_take(int fd)
{
	char byte;

	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
}

void
wake_others(int fd, int count)
{
	while (count-- > 0 && write(fd, "", 1) == 1)
		;
}
