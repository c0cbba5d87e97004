// CanaryTests.swift -- a secret in any position, right or wrong, appears in no message and no description.

import Configuration
import Testing

private let canary = "471147114711"

private let texts: [String] = [
  // In its place.
  "[[provider]]\naccount_id = \"1\"\naccess_key_id = \"x\"\naccess_key_secret = \"\(canary)\"",
  "[[provider]]\nproxy = \"http://user:\(canary)@127.0.0.1:3128\"",
  // As another type.
  "[[provider]]\naccess_key_secret = \(canary)",
  "[[provider]]\naccess_key_secret = \(canary).5",
  "[[provider]]\naccess_key_secret = [\"\(canary)\"]",
  "[[provider]]\naccess_key_secret = { value = \"\(canary)\" }",
  "[[provider]]\naccess_key_secret.value = \"\(canary)\"",
  "[[provider]]\naccess_key_secret = \"\"\"\n\(canary)\n\"\"\"",
  "[[provider]]\naccess_key_secret = \"\(canary)\\n\"",
  // In a neighbouring key, or in the wrong table.
  "[[provider]]\naccess_key_secret_file = \"\(canary)\"",
  "[[provider]]\naccess_key_secret_file = \"/\(canary)/\(canary)\"",
  "[[provider]]\naccess_key_secret_env = \"\(canary)\"",
  "[[provider]]\naccess_key_secret_env = \(canary)",
  "[[provider]]\naccess_key_secret_credential = \"\(canary)\"",
  "[[provider]]\naccess_key_secret_credential = \"../\(canary)\"",
  "[[provider]]\naccess_key_id = \"/ \(canary)\"",
  "[[provider]]\naccount_id = \"/ \(canary)\"",
  "[[provider]]\nkind = \"tencent\"\ntoken = \"\(canary)\"\nkey = \(canary)",
  "[[provider]]\nkind = \"json\"\ntoken = \"\(canary)\"",
  "[[provider]]\nacces_key_secret = \"\(canary)\"",
  "access_key_secret = \"\(canary)\"",
  "[log]\nsecret = \"\(canary)\"",
  // The secrets of the other kinds: valid, of the wrong form, of the wrong type, or not used.
  "[[provider]]\nkind = \"tencent\"\ntoken = \"\(canary)\"",
  "[[provider]]\nkind = \"tencent\"\ntoken = \" \(canary)\"",
  "[[provider]]\nkind = \"tencent\"\ntoken = \(canary)",
  "[[provider]]\nkind = \"tencent\"\ntoken_file = \"/\(canary)\"",
  "[[provider]]\nkind = \"tencent\"\ntoken_env = \"\(canary)\"",
  "[[provider]]\nkind = \"tencent\"\ntoken_credential = \"\(canary)\"",
  "[[provider]]\nkind = \"tencent\"\nkey = \"\(canary)\"",
  "[[provider]]\nkind = \"tencent\"\nkey_file = \"\(canary)\"",
  "[[provider]]\nkind = \"tencent\"\nid = \"\(canary)\"",
  "[[provider]]\nkind = \"tencent\"\nid = \(canary)",
  "[[provider]]\nkind = \"tencent\"\ncipher = \"aes\"\nid = \"1\"\nkey = \"\(canary)4711\"",
  "[[provider]]\nkind = \"tencent\"\ncipher = \"aes\"\nid = \"1\"\nkey = \"\(canary)\"",
  "[[provider]]\nkind = \"tencent\"\ncipher = \"aes\"\ntoken = \"\(canary)\"",
  "[[provider]]\nkind = \"tencent\"\ncipher = \"des\"\nid = \"1\"\nkey = \"\(canary)\"",
  "[[provider]]\nkind = \"tencent\"\ncipher = \"\"\nkey = \"\(canary)\"",
  "[[provider]]\nkind = \"emas\"\naccount_id = \"1\"\nsecret_key = \"\(canary)\"",
  "[[provider]]\nkind = \"emas\"\naccount_id = \"1\"\nsecret_key = \(canary)",
  "[[provider]]\nkind = \"emas\"\naccount_id = \" \(canary)\"",
  "[[provider]]\nkind = \"emas\"\naccount_id = \"1\"\naes_secret_key = \"\(canary)\"",
  "[[provider]]\nkind = \"emas\"\naccount_id = \"1\"\napi = \"v2\"\nsecret_key = \"\(canary)x\"",
  "[[provider]]\nkind = \"emas\"\naccount_id = \"1\"\napi = \"v2\"\nsecret_key = \"\(canary)\"",
  "[[provider]]\nkind = \"emas\"\naccount_id = \"1\"\napi = \"v2\"\naes_secret_key = \"\(canary)\"",
  "[[provider]]\nkind = \"emas\"\naccount_id = \"1\"\napi = \"v2\"\naes_secret_key = \"\(canary)\(canary)\(canary.prefix(8))\"",
  "[[provider]]\nkind = \"emas\"\napi = \"v2\"\naes_secret_key_env = \"\(canary)\"",
  "[[provider]]\nkind = \"baidu\"\naccount_id = \"1\"\nsecret = \"\(canary)\"",
  "[[provider]]\nkind = \"baidu\"\naccount_id = \"1\"\nsecret = \(canary)",
  "[[provider]]\nkind = \"baidu\"\naccount_id = \" \(canary)\"",
  "[[provider]]\nkind = \"baidu\"\naccount_id = \"1\"\nsecret_file = \"\(canary)\"",
  "[[provider]]\nkind = \"baidu\"\naccount_id = \"1\"\nsecret_env = \"\(canary)\"",
  "[[provider]]\nkind = \"volcengine\"\naccount_id = \"1\"\nsecret_key = \"\(canary)\"",
  "[[provider]]\nkind = \"volcengine\"\naccount_id = \"1\"\nsecret_key = \(canary)",
  "[[provider]]\nkind = \"volcengine\"\naccount_id = \" \(canary)\"",
  "[[provider]]\nkind = \"volcengine\"\naccount_id = \"1\"\nsecret_key_file = \"\(canary)\"",
  "[[provider]]\nkind = \"jdcloud\"\naccount_id = \"1\"\nkey = \"\(canary)\"",
  "[[provider]]\nkind = \"jdcloud\"\naccount_id = \"1\"\nkey = \(canary)",
  "[[provider]]\nkind = \"jdcloud\"\naccount_id = \" \(canary)\"",
  "[[provider]]\nkind = \"jdcloud\"\naccount_id = \"1\"\nkey_file = \"\(canary)\"",
  "[[provider]]\nkind = \"ucloud\"\nauth_id = \"1\"\nauth_secret = \"\(canary)\"",
  "[[provider]]\nkind = \"ucloud\"\nauth_id = \"1\"\nauth_secret = \(canary)",
  "[[provider]]\nkind = \"ucloud\"\nauth_id = \" \(canary)\"",
  "[[provider]]\nkind = \"ucloud\"\nauth_id = \"1\"\napp_id = \" \(canary)\"\nauth_secret_file = \"\(canary)\"",
  "[[provider]]\nkind = \"text\"\nurl = \"http://x:\(canary)@192.0.2.1/d\"",
  "[[provider]]\nkind = \"text\"\nurl = \"http://192.0.2.1/d?token=\(canary)\"",
  "[[provider]]\nkind = \"text\"\nurl = \"http://192.0.2.1/d\"\nsecret = \"\(canary)\"",
  "[[provider]]\nkind = \"json\"\nsecret = \"\(canary)\"",
  "[[provider]]\nkind = \"table\"\nurl = \"https://x:\(canary)@192.0.2.1/t\"",
  "[[provider]]\nkind = \"table\"\nurl = \"https://192.0.2.1/t?key=\(canary)\"",
  "[[provider]]\nkind = \"table\"\nhost = \"x:\(canary)@192.0.2.1\"",
  // In a URL.
  "[[provider]]\nproxy = \"user:\(canary)@127.0.0.1:3128\"",
  "[[provider]]\nproxy = \"http://user:\(canary)\"",
  "[[provider]]\nproxy = \"socks4://user:\(canary)@127.0.0.1:3128\"",
  "[[provider]]\nproxy = \"http://user:a/\(canary)?@127.0.0.1\"",
  "[[provider]]\nkind = \"json\"\nurl = \"https://user:\(canary)@dns.example/resolve\"",
  "[[provider]]\nkind = \"json\"\nurl = \"https://dns.example/resolve?token=\(canary)\"",
  "[[provider]]\nkind = \"json\"\nurl = \"https://dns.example/resolve#\(canary)\"",
  "[[provider]]\nkind = \"doh\"\nservers = [\"https://\(canary)@dns.example/q\"]",
  "[cache]\nredis = \"redis://:\(canary)@127.0.0.1:6379/0\"",
  "[cache]\nredis = \"rediss://user:\(canary)@store.example\"\n[fleet]\npassword = \"x\"",
  "[cache]\nredis = \"redis://user:\(canary)@127.0.0.1:0\"",
  "[cache]\nredis = \"redis+sentinel://user:\(canary)@127.0.0.1\"",
  "[cache]\nredis = \"user:\(canary)@redis://127.0.0.1\"",
  "[fleet]\nsecret = \"\(canary)\"",
  "[fleet]\nsecret = \(canary)",
  "[fleet]\nsecret = \"\(canary)\(canary)\(canary)\"\npassword = \"\(canary)\"",
  "[fleet]\nsecret_file = \"/\(canary)\"\npassword_file = \"\(canary)\"",
  "[fleet]\nsecret_env = \"\(canary)\"\npassword_credential = \"\(canary)\"",
  // In a text that is not TOML.
  "[[provider]]\naccess_key_secret = \(canary)\(canary)\(canary)",
  "[[provider]]\naccess_key_secret = x\(canary)",
  "[[provider]]\naccess_key_secret = \(canary)x",
  "[[provider]]\naccess_key_secret: \(canary)",
  "[[provider]]\naccess_key_secret = \"\(canary)",
  "[[provider]]\naccess_key_secret = 0x\(canary)\(canary)",
  "[[provider]]\naccess_key_secret = \"\(canary)\"\naccess_key_secret = \"\(canary)\"",
]

@Test(arguments: texts)
func `a secret appears in no mistake, no warning and no description`(text: String) {
  let environment = ["CREDENTIALS_DIRECTORY": "/nonexistent"]
  for line in mistakes(text, environment: environment) + warnings(text, environment: environment) {
    #expect(!line.contains(canary), "\(line)")
  }
  if case .success(let loaded) = parse(text) {
    var dumped = ""
    dump(loaded, to: &dumped)
    #expect(!dumped.contains(canary))
    #expect(!"\(loaded)".contains(canary))
    #expect(!String(reflecting: loaded).contains(canary))
  }
}
