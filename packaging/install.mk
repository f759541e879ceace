# install.mk - install, uninstall, deb and its test. The main Makefile includes this.
#
# One list says what is installed, so that uninstall takes away exactly that:
# packaging/install reads it. Paths in units and in the sample follow PREFIX
# and SYSCONFDIR.
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
# systemd's place for a user's units depends on the prefix (systemd.unit(5)).
USERUNITDIR ?= $(PREFIX)/$(if $(filter /usr /usr/local,$(PREFIX)),lib,share)/systemd/user
SYSTEMUNITDIR ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
UDEVRULESDIR ?= $(PREFIX)/lib/udev/rules.d
DEBVERSION ?= $(RELEASE)$(if $(COMMIT),+g$(COMMIT))

INSTALL_ENV = BUILD='$(BUILD)' DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' LIBDIR='$(LIBDIR)' MANDIR='$(MANDIR)' \
	SYSCONFDIR='$(SYSCONFDIR)' USERUNITDIR='$(USERUNITDIR)' SYSTEMUNITDIR='$(SYSTEMUNITDIR)' SYSUSERSDIR='$(SYSUSERSDIR)' UDEVRULESDIR='$(UDEVRULESDIR)'

.PHONY: install uninstall deb release test-package

install: daemons library
	@$(INSTALL_ENV) packaging/install

uninstall:
	@$(INSTALL_ENV) packaging/install --remove

deb:
	@.ci/deps deb
	@$(MAKE) --no-print-directory library
	@GO='$(abspath $(GO))' VERSION='$(VERSION)' DEBVERSION='$(DEBVERSION)' MAKE='$(MAKE)' packaging/deb

# build/release: see packaging/release. KEY is a key of gpg, to sign it.
release:
	@.ci/deps release
	@KEY='$(KEY)' GO='$(abspath $(GO))' RELEASE='$(RELEASE)' MAKE='$(MAKE)' packaging/release

# DEB is a package to test instead of one built now, KEEP a directory for the fresh Debian. If the test is not
# possible, the script prints the reason and exits with 77.
test-package:
	-@.ci/deps package
	@test/service/package.sh '$(DEB)' '$(KEEP)' || [ $$? = 77 ]
