// TransferForms.swift -- converts between a dialect's transfers and the HTTP client's, which do not know each other.

import HTTPClient
import HTTPDNS

extension HTTPRequest {
  init(_ request: TransferRequest, headers: [HTTPField]) {
    self.init(
      method: request.method == .get ? .get : .post, target: request.target, headers: headers, body: request.body)
  }
}

extension TransferResponse {
  init(_ response: HTTPResponse) {
    self.init(
      status: response.status, contentType: response.contentType.isEmpty ? nil : response.contentType,
      age: response.age.map { UInt32(clamping: $0) }, maxAge: response.maxAge.map { UInt32(clamping: $0) },
      retryAfter: response.retryAfter.map { .seconds($0) }, body: response.body)
  }
}
