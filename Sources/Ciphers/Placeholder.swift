// Placeholder.swift -- removed with the module's first file.
