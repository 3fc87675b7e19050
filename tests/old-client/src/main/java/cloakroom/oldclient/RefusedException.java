package cloakroom.oldclient;

import java.io.IOException;
import retrofit2.Response;

/** The server answered, and not with a 2xx. */
final class RefusedException extends Exception {
    private static final long serialVersionUID = 1L;

    private RefusedException(String message) {
        super(message);
    }

    static RefusedException of(Response<?> response) throws IOException {
        String url = response.raw().request().url().toString();
        String body = response.errorBody().string().replaceAll("\\s+", " ").trim();
        return new RefusedException(
                String.format("HTTP %d %s from %s: %s", response.code(), response.message(), url, body));
    }
}
