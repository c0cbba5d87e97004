"""The benchmark: what httpdnsd costs per answer, beside a raw echo and other servers, all on loopback."""
