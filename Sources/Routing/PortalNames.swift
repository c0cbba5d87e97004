// PortalNames.swift -- the names that systems query to detect a captive portal.

import DNSWire

/// The probe names of desktop systems, phones and browsers.
///
/// Only names that serve no other purpose: the local network answers them, and it must not be able to answer for sites that
/// people use.
public enum PortalNames {
  public static let all: [DomainName] = texts.map { DomainName(text: $0)! }

  private static let texts = [
    // Apple
    "captive.apple.com", "www.appleiphonecell.com", "www.airport.us", "www.ibook.info", "www.itools.info",
    "www.thinkdifferent.us",
    // Android, ChromeOS, Chrome
    "connectivitycheck.gstatic.com", "connectivitycheck.android.com",
    // Windows
    "www.msftconnecttest.com", "ipv6.msftconnecttest.com", "www.msftncsi.com", "ipv6.msftncsi.com",
    "dns.msftncsi.com",
    // NetworkManager as GNOME, Ubuntu, Debian, Arch, Manjaro and openSUSE configure it; KDE; elementary OS
    "nmcheck.gnome.org", "connectivity-check.ubuntu.com", "network-test.debian.org", "ping.archlinux.org",
    "ping.manjaro.org", "conncheck.opensuse.org", "networkcheck.kde.org", "capnet.elementary.io",
    // Firefox
    "detectportal.firefox.com",
  ]
}
