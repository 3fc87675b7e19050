package cloakroom.oldclient;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.RequestBody;
import okhttp3.ResponseBody;
import retrofit2.Call;
import retrofit2.Response;
import retrofit2.Retrofit;
import retrofit2.converter.jackson.JacksonConverterFactory;
import retrofit2.converter.scalars.ScalarsConverterFactory;

/** Hands in bundles and fetches them, with OkHttp's defaults: 10 s to connect, and 10 s without a byte is an end. */
final class StagingClient {
    private static final MediaType JSON = MediaType.parse("application/json");
    /** Odd for a part, and without a boundary; but it is what the original put there. */
    private static final MediaType BUNDLE = MediaType.parse("multipart/form-data");

    private final ObjectMapper mapper = new ObjectMapper();
    private final StagingService service;

    StagingClient(String url, OkHttpClient client) {
        service = new Retrofit.Builder()
                .baseUrl(url)
                .client(client)
                .addConverterFactory(ScalarsConverterFactory.create())
                .addConverterFactory(JacksonConverterFactory.create(mapper))
                .build()
                .create(StagingService.class);
    }

    /** Asks both paths and returns both answers. */
    String ping() throws IOException, RefusedException {
        return answer(service.ping()) + System.lineSeparator() + answer(service.pingWithoutVersion());
    }

    /** Streams the file: its length is known, so OkHttp announces the whole body's. Returns the ticket as JSON. */
    String upload(Owner owner, Path bundle) throws IOException, RefusedException {
        RequestBody resources = RequestBody.create(BUNDLE, bundle.toFile());
        // From a String, so that OkHttp appends "; charset=utf-8" to the type.
        RequestBody resourcesOwner = RequestBody.create(JSON, mapper.writeValueAsString(owner));
        return mapper.writeValueAsString(answer(service.upload(resources, resourcesOwner)));
    }

    void download(String resourceId, String resourceSecret, Path target) throws IOException, RefusedException {
        try (ResponseBody body = answer(service.download(resourceId, resourceSecret));
                InputStream bytes = body.byteStream()) {
            Files.copy(bytes, target, StandardCopyOption.REPLACE_EXISTING);
        }
    }

    private static <T> T answer(Call<T> call) throws IOException, RefusedException {
        Response<T> response = call.execute();
        if (!response.isSuccessful()) {
            throw RefusedException.of(response);
        }
        return response.body();
    }
}
