#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
// CAccess.h -- access control lists and other extended attributes of files (acl(5), xattr(7)).
#ifndef HTTPDNSD_CACCESS_H
#define HTTPDNSD_CACCESS_H

#include <endian.h>
#include <linux/limits.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdint.h>
#include <string.h>
#include <sys/xattr.h>

/// Grants read and write access to a path to its owner, its own group and one more group; others get no access. Only
/// the owner may call it, but needs to be in neither group. Returns 0, or -1 with errno.
static inline int access_add_group(const char *path, uint32_t group) {
  uint16_t both = htole16(ACL_READ | ACL_WRITE);
  uint32_t no_id = htole32((uint32_t)ACL_UNDEFINED_ID);
  struct {
    struct posix_acl_xattr_header header;
    struct posix_acl_xattr_entry entries[5];
  } list = {
      .header = {.a_version = htole32(POSIX_ACL_XATTR_VERSION)},
      .entries =
          {
              {.e_tag = htole16(ACL_USER_OBJ), .e_perm = both, .e_id = no_id},
              {.e_tag = htole16(ACL_GROUP_OBJ), .e_perm = both, .e_id = no_id},
              {.e_tag = htole16(ACL_GROUP), .e_perm = both, .e_id = htole32(group)},
              {.e_tag = htole16(ACL_MASK), .e_perm = both, .e_id = no_id},
              {.e_tag = htole16(ACL_OTHER), .e_perm = 0, .e_id = no_id},
          },
  };
  return lsetxattr(path, "system.posix_acl_access", &list, sizeof list, 0);
}

/// Copies the extended attributes of an open file to another one, access control lists among them, as far as both file
/// systems allow; not those by which the kernel checks a file's content (IMA, EVM), which is another one.
static inline void access_copy_attributes(int from, int to) {
  char names[XATTR_LIST_MAX], value[XATTR_SIZE_MAX];
  ssize_t length = flistxattr(from, names, sizeof names);
  for (const char *name = names; name < names + length; name += strlen(name) + 1) {
    if (strcmp(name, "security.ima") == 0 || strcmp(name, "security.evm") == 0) continue;
    ssize_t size = fgetxattr(from, name, value, sizeof value);
    if (size >= 0) (void)fsetxattr(to, name, value, (size_t)size, 0);
  }
}

#endif
