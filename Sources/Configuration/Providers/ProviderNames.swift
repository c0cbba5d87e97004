// ProviderNames.swift -- the names of a file's providers, for a shell that completes one.

extension Configuration {
  /// The names of the providers of a configuration file, in their order, with what the environment says in their place.
  ///
  /// Mistakes elsewhere in the file do not matter, and no secret is read. Empty if the file cannot be read or is no TOML.
  public static func providerNames(path: String, environment: Environment = processEnvironment) -> [String] {
    guard let text = try? text(path: path), let file = try? table(text, fileName: path) else { return [] }
    let root = withoutActuallyEscaping(environment) { environment in
      EnvironmentSettings.applied(to: file, MistakeReport(file: path, environment: environment))
    }
    let usual = Provider().name
    guard let value = root["provider"] else { return [usual] }
    guard case .array(let tables) = value else { return [] }
    return tables.compactMap { table in
      guard case .table(let keys) = table else { return nil }
      let name = (keys["name"] ?? keys["kind"])?.line ?? usual
      return isIdentifier(name) ? name : nil
    }
  }
}
